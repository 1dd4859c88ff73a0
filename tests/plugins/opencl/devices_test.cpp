// Which device is opened, and what is said where none can be.
#include "opencl_run.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

std::string refusal(plugin::Options options) {
  set_kernel_cache();
  const auto registry = build_tree_plugins();
  const auto opened = registry->open_backend(backend("opencl", -1, std::move(options)).request);
  return opened.ok() ? "it was opened" : opened.error().text;
}

}  // namespace

TEST_CASE("opencl/devices: an opened device hides its memory and gives back what was written") {
  const ModelOnBackends model(tiny_file(), {opencl(1), cpu()});
  REQUIRE(model->engine().devices().size() == 2);
  Device& device = *model->engine().devices()[0];
  CHECK(device.info().name == "opencl");
  CHECK_FALSE(device.info().host);
  CHECK(device.info().memory_total_bytes > 0);
  auto buffer = device.alloc(10000);
  REQUIRE(buffer.ok());
  CHECK((*buffer)->host_ptr() == nullptr);
  const std::vector<uint32_t> written(2500, 7);
  REQUIRE((*buffer)->write(0, written.data(), 10000).ok());
  const uint32_t two[2] = {1, 2};
  REQUIRE((*buffer)->write(4000, two, 8).ok());
  std::vector<uint32_t> words(2500);
  REQUIRE((*buffer)->read(0, words.data(), 10000).ok());
  CHECK(words[999] == 7);
  CHECK(words[1000] == 1);
  CHECK(words[1001] == 2);
  CHECK(words[1002] == 7);
  CHECK_FALSE((*buffer)->write(9997, two, 8).ok());
  CHECK_FALSE((*buffer)->read(10001, words.data(), 0).ok());
}

TEST_CASE("opencl/devices: memory that the device does not have is one clear error") {
  const ModelOnBackends model(tiny_file(), {opencl(1), cpu()});
  Device& device = *model->engine().devices()[0];
  const auto buffer = device.alloc(uint64_t{1} << 60);
  REQUIRE_FALSE(buffer.ok());
  CHECK(buffer.error().code == ErrorCode::kOutOfMemory);
  CHECK_THAT(buffer.error().text, Catch::Contains("1152921504606846976 bytes"));
}

TEST_CASE("opencl/devices: without a driver the backend says that there is no device") {
  const TempDir empty;
  // In a process of its own: the loader reads the folder once.
  const auto run = run_process({build_dir() / "bin/minfer-run", "-m", tiny_file(), "--backend", "opencl", "-n", "1", "x"}, {},
                               {"OCL_ICD_VENDORS=" + empty.path().string()});
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, Catch::Contains("error: backend 'opencl'") && Catch::Contains("OpenCL"));
  CHECK_THAT(run.err, Catch::Contains("no OpenCL device: no driver is installed") || Catch::Contains("OpenCL is not installed"));
}

TEST_CASE("opencl/devices: a processor is used on request only and options that match nothing name what there is") {
  const std::string platform = opencl().request.options.at("platform");  // or skipped
  CHECK_THAT(refusal({{"platform", platform}}), Catch::Contains("no GPU and no accelerator among the OpenCL devices: '") &&
                                                    Catch::Contains("option allow_cpu: true admits processors"));
  const plugin::Options cpu_too{{"allow_cpu", "true"}};
  plugin::Options options = cpu_too;
  options["device"] = "no such device";
  CHECK_THAT(refusal(options), Catch::Contains("option device: nothing is 'no such device' among '"));
  options["device"] = "99";
  CHECK_THAT(refusal(options), Catch::Contains("option device: nothing is '99' among '"));
  options["device"] = "0";
  CHECK(refusal(options) == "it was opened");
  options["platform"] = "no such platform";
  CHECK_THAT(refusal(options), Catch::Contains("option platform: nothing is 'no such platform' among '"));
  options["platform"] = "0";
  CHECK(refusal(options) == "it was opened");
  options["colour"] = "red";
  CHECK_THAT(refusal(options), Catch::Contains("option 'colour' is not known"));
}
