// One layout for C and C++. That the enumerations of engine and ABI agree is asserted where they are cast (plugin/graph_view.cpp).
#include <catch2/catch.hpp>

#include "minfer/abi/abi_hash.h"
#include "minfer/abi/plugin.h"

extern "C" size_t minfer_test_c_layout(int which);

TEST_CASE("plugin/abi: C and C++ see the same layout") {
  const size_t sizes[] = {sizeof(mi_error),       sizeof(mi_plugin_desc), sizeof(mi_op_attrs),   sizeof(mi_value),
                          sizeof(mi_node),        sizeof(mi_step),        sizeof(mi_graph_view), sizeof(mi_weight),
                          sizeof(mi_device_info), sizeof(mi_backend_v1),  sizeof(mi_arch_v1)};
  for (int i = 0; i < static_cast<int>(std::size(sizes)); ++i) CHECK(minfer_test_c_layout(i) == sizes[i]);
  CHECK(minfer_test_c_layout(static_cast<int>(std::size(sizes))) == 0);
}

TEST_CASE("plugin/abi: a field counts only where the maker's size holds it whole") {
  mi_error error{};
  error.struct_size = offsetof(mi_error, text) + sizeof(error.text) - 1;
  CHECK(MI_HAS_FIELD(mi_error, &error, code));
  CHECK_FALSE(MI_HAS_FIELD(mi_error, &error, text));
  error.struct_size = sizeof error;
  CHECK(MI_HAS_FIELD(mi_error, &error, text));
}

TEST_CASE("plugin/abi: the hash of the headers is a SHA-256") {
  const std::string hash = MI_ABI_HASH;
  CHECK(hash.size() == 64);
  CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
}
