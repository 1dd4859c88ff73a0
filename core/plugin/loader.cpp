#include "plugin/loader.hpp"

#include "plugin/abi_check.hpp"
#include "plugin/abi_error.hpp"
#include "plugin/shared_library.hpp"

namespace minfer::plugin {

LoadResult open_plugin(const Candidate& candidate, Options options, const LogSink& log) {
  if (!candidate.record.ok()) return {nullptr, candidate.record};
  const auto fail = [&](Stage stage, const Error& error, std::string hint) {
    return LoadResult{nullptr, {candidate.path, stage, error.code, error.text, std::move(hint)}};
  };

  const LoadedQuery loaded = load_query(candidate.library);
  if (!loaded.query)
    return fail(loaded.stage, unsupported("{}", loaded.text),
                loaded.stage == Stage::kDlopen ? "install what the library needs, or install the plugin again"
                                               : "this is no plugin of minfer for this ABI: remove it");

  const mi_plugin_desc* desc = nullptr;
  try {
    desc = loaded.query();
  } catch (...) {
    return fail(Stage::kEntry, internal_error("{} threw an exception", MI_PLUGIN_QUERY_NAME), "report it to the plugin's author");
  }
  if (!desc) return fail(Stage::kEntry, internal_error("{} returned nothing", MI_PLUGIN_QUERY_NAME), "report it to the plugin's author");
  if (const auto refusal = check_descriptor_abi(*desc)) return fail(Stage::kAbi, refusal->error, refusal->hint);
  if (const auto refusal = check_descriptor(*desc, candidate.manifest)) return fail(Stage::kDescriptor, refusal->error, refusal->hint);

  auto host = std::make_unique<HostApi>(std::move(options), log);
  void* self = nullptr;
  const void* table = nullptr;
  AbiError error;
  int32_t code = MI_OK;
  try {
    code = desc->open(host->table(), &self, &table, error.out());
  } catch (...) {
    return fail(Stage::kOpen, internal_error("open threw an exception across the plugin boundary"), "report it to the plugin's author");
  }
  if (const Status status = error.status(code, "open"); !status.ok())
    return fail(Stage::kOpen, status.error(), "check the plugin's options and what it needs on this machine");

  auto plugin = std::make_shared<OpenPlugin>(desc, std::move(host), self, table);
  const auto refusal = candidate.manifest.kind == Kind::kBackend ? check_table(plugin->backend()) : check_table(plugin->arch());
  if (refusal) return fail(Stage::kOpen, refusal->error, refusal->hint);
  return {std::move(plugin), {candidate.path, Stage::kReady, ErrorCode::kInternal, "", ""}};
}

}  // namespace minfer::plugin
