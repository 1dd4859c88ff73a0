#include "plugin/loader.hpp"

#include "plugin/abi_check.hpp"
#include "plugin/abi_error.hpp"
#include "plugin/shared_library.hpp"

namespace minfer::plugin {

namespace {

constexpr std::string_view kReport = "report it to the plugin's author";

Record record_of(const Candidate& candidate, Stage stage, const Error& error, std::string_view hint) {
  return {candidate.path, stage, error.code, error.text, std::string(hint)};
}
Record success(const Candidate& candidate, Stage stage) { return {candidate.path, stage, ErrorCode::kInternal, "", ""}; }

struct Described {
  const mi_plugin_desc* desc = nullptr;  // null where record is a failure
  Record record;
};

Described load_descriptor(const Candidate& candidate) {
  if (!candidate.record.ok()) return {nullptr, candidate.record};
  const auto fail = [&](Stage stage, const Error& error, std::string_view hint) {
    return Described{nullptr, record_of(candidate, stage, error, hint)};
  };

  const LoadedQuery loaded = load_query(candidate.library);
  if (!loaded.query)
    return fail(loaded.stage, unsupported("{}", loaded.text),
                loaded.stage == Stage::kDlopen
                    ? std::string("install what the library needs, or install the plugin again")
                    : text("this is no plugin for ABI {} of minfer: install one that is, or remove the file", MI_ABI_MAJOR));

  const mi_plugin_desc* desc = nullptr;
  try {
    desc = loaded.query();
  } catch (...) {
    return fail(Stage::kEntry, internal_error("{} threw an exception", MI_PLUGIN_QUERY_NAME), kReport);
  }
  if (!desc) return fail(Stage::kEntry, internal_error("{} returned nothing", MI_PLUGIN_QUERY_NAME), kReport);
  if (const auto refusal = check_descriptor_abi(*desc)) return fail(Stage::kAbi, refusal->error, refusal->hint);
  if (const auto refusal = check_descriptor(*desc, candidate.manifest)) return fail(Stage::kDescriptor, refusal->error, refusal->hint);
  return {desc, success(candidate, Stage::kDescriptor)};
}

}  // namespace

Record check_library(const Candidate& candidate) { return load_descriptor(candidate).record; }

LoadResult open_plugin(const Candidate& candidate, Options options, const LogSink& log) {
  Described described = load_descriptor(candidate);
  if (!described.desc) return {nullptr, std::move(described.record)};
  const mi_plugin_desc* const desc = described.desc;
  const auto fail = [&](const Error& error, std::string_view hint) {
    return LoadResult{nullptr, record_of(candidate, Stage::kOpen, error, hint)};
  };

  auto host = std::make_unique<HostApi>(std::move(options), log);
  void* self = nullptr;
  const void* table = nullptr;
  AbiError error;
  int32_t code = MI_OK;
  try {
    code = desc->open(host->table(), &self, &table, error.out());
  } catch (...) {
    return fail(internal_error("open threw an exception across the plugin boundary"), kReport);
  }
  if (const Status status = error.status(code, "open"); !status.ok())
    return fail(status.error(), "check the plugin's options and what it needs on this machine");

  auto plugin = std::make_shared<OpenPlugin>(desc, std::move(host), self, table);
  const auto refusal = candidate.manifest.kind == Kind::kBackend ? check_table(plugin->backend()) : check_table(plugin->arch());
  if (refusal) return fail(refusal->error, refusal->hint);
  return {std::move(plugin), success(candidate, Stage::kReady)};
}

}  // namespace minfer::plugin
