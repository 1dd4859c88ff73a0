// When the cpu device packs weights, and when it lets go of the model file's bytes.
#include "weights.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

using namespace minfer;
using namespace minfer::cpu;

namespace {

constexpr size_t kRows = 40, kCols = 64;  // two groups of 16 rows and eight rows

// A matrix in f32 that is looked up too, as a file holds it, imported.
struct Imported {
  std::vector<float> file;
  std::vector<uint32_t> done;
  mi_weight weight{};
  mi_weight_list list{};
  std::unique_ptr<CpuWeights> weights;

  explicit Imported(uint32_t roles = MI_ROLE_MATRIX | MI_ROLE_EMBEDDING) {
    for (size_t i = 0; i < kRows * kCols; ++i) file.push_back(std::sin(static_cast<float>(i)));
    weight.struct_size = sizeof weight;
    weight.id = 3;
    weight.dtype = MI_TYPE_F32;
    weight.n_dims = 2;
    weight.dims[0] = kCols;
    weight.dims[1] = kRows;
    weight.dims[2] = weight.dims[3] = 1;
    weight.roles = roles;
    weight.data = file.data();
    weight.size_bytes = file.size() * sizeof(float);
    list.struct_size = sizeof list;
    list.n_weights = 1;
    list.weight_stride = sizeof weight;
    list.weights = &weight;
    list.ctx = this;
    list.source_done = [](void* ctx, uint32_t id) {
      auto* self = static_cast<Imported*>(ctx);
      self->done.push_back(id);
      std::fill(self->file.begin(), self->file.end(), -1000.0f);  // the host drops the bytes
    };
    weights = std::make_unique<CpuWeights>(sdk::WeightList(&list));
    list = {};  // valid during the import only
  }
  const CpuWeight& matrix() const { return (*weights)[3]; }
  float looked_up(size_t row, size_t column) const {
    std::vector<float> out(kCols);
    matrix().look_up(row, out.data());
    return out[column];
  }
};

float element(size_t row, size_t column) { return std::sin(static_cast<float>(row * kCols + column)); }

// Element [row][column] of packed f32 groups (packed_format.hpp): 16 rows of a column lie side by side.
float packed_element(const std::byte* group, size_t row_in_group, size_t column) {
  float value;
  std::memcpy(&value, group + (column * 16 + row_in_group) * sizeof value, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("cpu/weights: a group is packed for good at its second use and the file's bytes go when all are") {
  Imported imported;
  const CpuWeight& matrix = imported.matrix();
  const MatmulKernels& kernels = matmul_kernels(best_isa());
  PageMemory scratch(matrix.group_bytes());
  REQUIRE(matrix.group_bytes() == 16 * kCols * sizeof(float));

  // First use, group by group: a copy in scratch memory.
  for (size_t g = 0; g < 3; ++g) {
    const CpuWeight::PackedGroups groups = matrix.use(kernels, g, 3, scratch.data());
    CHECK(groups.first == scratch.data());
    CHECK(groups.end == g + 1);
    CHECK(packed_element(groups.first, 5, 7) == element(16 * g + 5, 7));
  }
  imported.weights->report_packed();
  CHECK(imported.done.empty());
  CHECK(imported.looked_up(20, 9) == element(20, 9));

  // Second use, the last group later than the others.
  for (size_t g = 0; g < 2; ++g) {
    const CpuWeight::PackedGroups groups = matrix.use(kernels, g, 3, scratch.data());
    CHECK(groups.first == matrix.packed + g * matrix.group_bytes());
    CHECK(groups.end == g + 1);
    CHECK(packed_element(groups.first, 15, 63) == element(16 * g + 15, 63));
  }
  imported.weights->report_packed();
  CHECK(imported.done.empty());
  CHECK(imported.looked_up(20, 9) == element(20, 9));
  CHECK(imported.looked_up(39, 9) == element(39, 9));
  matrix.use(kernels, 2, 3, scratch.data());
  imported.weights->report_packed();
  imported.weights->report_packed();
  CHECK(imported.done == std::vector<uint32_t>{3});

  // From then on all groups lie together, and nothing reads the file.
  const CpuWeight::PackedGroups groups = matrix.use(kernels, 0, 3, scratch.data());
  CHECK(groups.first == matrix.packed);
  CHECK(groups.end == 3);
  CHECK(packed_element(groups.first + 2 * matrix.group_bytes(), 7, 1) == element(39, 1));
  CHECK(imported.looked_up(39, 9) == element(39, 9));
}

TEST_CASE("cpu/weights: an embedding that no product reads stays in the file") {
  Imported imported(MI_ROLE_EMBEDDING);
  CHECK(imported.weights->own_bytes() == 0);
  imported.weights->report_packed();
  CHECK(imported.done.empty());
  CHECK(imported.looked_up(31, 2) == element(31, 2));
}
