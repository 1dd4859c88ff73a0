// A host that opens one plugin (sdk_probe.cpp, by its manifest) and checks what comes over the boundary. Built by each compiler there
// is; no test framework, so that this stays cheap. Exit 0: all as expected.
#include <cstdio>
#include <cstring>

#include "plugin/registry.hpp"

using namespace minfer;
using namespace minfer::plugin;

namespace {

int failures = 0;

void expect(std::string_view what, std::string_view found, std::string_view expected) {
  if (found == expected) return;
  ++failures;
  std::printf("%s: expected '%s', found '%s'\n", std::string(what).c_str(), std::string(expected).c_str(), std::string(found).c_str());
}

template <class Outcome>
std::string text_of(const Outcome& outcome) {
  return outcome.ok() ? "ok" : outcome.error().text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  SearchPaths search;
  search.files = {argv[1]};
  Registry registry(discover(search), {});
  expect("named", text_of(registry.check_named()), "ok");
  const std::string refused = text_of(registry.open_backend({"sdk_probe", {{"size", "10"}}, {}, {}}));
  const size_t stage = refused.find("stage  ");
  expect("bad option", refused.substr(stage, refused.find('\n', stage) - stage),
         "stage  devices: device 0: option size: '10' is not a whole number from 1 to 9 or auto");
  auto backend = registry.open_backend({"sdk_probe", {{"size", "3"}}, {}, {}});
  expect("open", text_of(backend), "ok");
  if (!backend.ok()) return 1;
  Device& device = *(*backend)->devices()[0];
  expect("name", device.info().name, "sdk_probe");
  expect("description", device.info().description, "size 3");
  const Graph graph;
  SplitView nothing;
  nothing.graph = &graph;
  expect("bad_alloc", text_of(device.alloc(2000)), "device sdk_probe: out of memory");
  expect("exception", text_of(device.supports(nothing)), "device sdk_probe: thrown by the device");
  expect("other exception", text_of(device.sync()), "device sdk_probe: an exception of an unknown type was thrown");
  expect("code", text_of(device.create_plan(nothing, nullptr)), "device sdk_probe: no plans");
  const auto bytes = device.kv_region_bytes({KvFormat::kF16, 2, 64, 3});
  expect("kv", bytes.ok() ? std::to_string(bytes->k) + " " + std::to_string(bytes->v) : bytes.error().text, "192 2");
  auto buffer = device.alloc(16);
  expect("alloc", text_of(buffer), "ok");
  if (!buffer.ok()) return 1;
  char in[16] = "fifteen letters", out[16] = {};
  expect("write", text_of((*buffer)->write(0, in, sizeof in)), "ok");
  expect("read", text_of((*buffer)->read(0, out, sizeof out)), "ok");
  expect("bytes", std::string_view(out, sizeof out), std::string_view(in, sizeof in));
  return failures ? 1 : 0;
}
