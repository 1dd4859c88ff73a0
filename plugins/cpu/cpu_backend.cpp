// The cpu plugin's entry: its options and its one device.
#include "cpu_device.hpp"

namespace minfer::cpu {
namespace {

constexpr uint64_t kMaxThreads = 1024;
constexpr unsigned kMaxThreadsPerCpu = 4;  // more wait for each other most of the time: 64 on one CPU made a step 5 times as long

Isa read_isa(const sdk::Host& host) {
  const std::string wanted = host.option("isa").value_or("auto");
  if (wanted == "auto") return best_isa();
  for (uint32_t i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (wanted != isa_name(isa)) continue;
    if (!isa_supported(isa))
      sdk::fail(MI_UNSUPPORTED, "option isa: this machine does not have ", wanted, " (its best is ", isa_name(best_isa()), ")");
    return isa;
  }
  sdk::fail(MI_INVALID_ARGUMENT, "option isa: '", wanted, "' is none of auto, baseline, avx2, avx512, avx512vnni");
}

// auto, 0 and -1 mean the CPUs that this process may use.
unsigned read_threads(const sdk::Host& host) {
  const std::string wanted = host.option("threads").value_or("auto");
  if (wanted == "0" || wanted == "-1") return usable_cpus();
  const auto threads = static_cast<unsigned>(host.option_uint("threads", 1, kMaxThreads).value_or(usable_cpus()));
  const unsigned cpus = usable_cpus(), useful = kMaxThreadsPerCpu * cpus;
  if (threads <= useful) return threads;
  host.warn("threads: ", useful, " of ", threads, " are started, this process may use ", cpus, " CPUs");
  return useful;
}

class CpuBackend final : public sdk::Backend {
 public:
  explicit CpuBackend(const sdk::Host& host) : host_(host), n_threads_(read_threads(host)), isa_(read_isa(host)) {}

  uint32_t device_count() override { return 1; }
  std::unique_ptr<sdk::Device> open_device(uint32_t) override {
    return std::make_unique<CpuDevice>(n_threads_, isa_, [host = host_](const std::string& line) { host.log(MI_LOG_DEBUG, line); });
  }

 private:
  sdk::Host host_;
  unsigned n_threads_;
  Isa isa_;
};

}  // namespace
}  // namespace minfer::cpu

MINFER_EXPORT_BACKEND(minfer::cpu::CpuBackend, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
