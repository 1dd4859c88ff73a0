#include "programs/run_report.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/env.hpp"
#include "base/utf8.hpp"
#include "gguf/describe.hpp"
#include "gguf/types.hpp"
#include "programs/cli.hpp"

namespace minfer::programs {
namespace {

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

std::string in_time(uint64_t count, double seconds) {
  return text("{} tokens in {:.2f}s ({:.1f} tok/s)", count, seconds, rate(static_cast<double>(count), seconds));
}

std::string_view reason(FinishReason finish) {
  switch (finish) {
    case FinishReason::kEndOfGeneration: return "end of generation";
    case FinishReason::kStopString: return "stop string";
    case FinishReason::kLength: return "-n reached";
    case FinishReason::kContextFull: return "context full";
    case FinishReason::kCancelled: return "interrupted";
  }
  return "";
}

void trace_line(const std::string& line) { print_notice(one_line(line)); }

void trace_graph(const CompiledGraph& compiled, const Model& model) {
  const auto device = [&](uint32_t d) { return model.engine().devices()[d]->info().name; };
  std::map<std::pair<std::string, std::string>, int> counts;
  for (size_t s = 0; s < compiled.splits.size(); ++s) {
    const Split& split = compiled.splits[s];
    trace_line(text("[graph] split {}: {} nodes {}-{}", s, device(split.device), split.nodes.front(), split.nodes.back()));
    for (const NodeId n : split.nodes) ++counts[{std::string(op_info(compiled.graph.nodes[n].op).name), device(split.device)}];
  }
  for (const auto& [key, count] : counts) trace_line(text("[graph] op {} backend {} x{}", key.first, key.second, count));
}

void trace_build(const CompiledGraph& compiled) {
  trace_line(
      text("[rebuild] graph {}: {} tokens, {} rows of logits, {} nodes ({} fused), {} splits: build {:.3f} ms, assign {:.3f} ms, "
           "alloc {:.3f} ms",
           compiled.uid, compiled.params.n_tokens, compiled.params.n_out, compiled.graph.nodes.size(), compiled.n_fused,
           compiled.splits.size(), compiled.build_ms, compiled.assign_ms, compiled.plan_ms));
}

bool is_key_tensor(std::string_view name) {
  return name == "token_embd.weight" || name == "output_norm.weight" || name == "output.weight" || name.starts_with("blk.0.");
}

}  // namespace

void Notes::line(std::string_view text) const {
  if (!quiet_) print_notice(text);
}

void print_header(const Notes& notes, const Model& model) {
  const gguf::ModelFile& file = model.file();
  notes.line(text("File: {} bytes ({:.1f} MB) in {} part(s)", file.total_bytes(), static_cast<double>(file.total_bytes()) / 1e6,
                  file.part_count()));
  notes.line(text("GGUF: {} KV, {} tensors", file.metadata().values().size(), file.tensors().size()));
  notes.line("Model loaded.");
  notes.line(text("Vocabulary: {} tokens", model.tokenizer().vocabulary().size()));
}

void print_meta(const Model& model) {
  for (const gguf::Value& value : model.file().metadata().values()) trace_line(text("{} = {}", value.name, gguf::describe_value(value)));
  for (const gguf::Tensor& tensor : model.file().tensors())
    if (is_key_tensor(tensor.name))
      trace_line(text("{} {} {}", tensor.name, gguf::dims_text(std::span(tensor.dims).first(tensor.n_dims)), gguf::type_name(tensor.type)));
}

void print_prefill(const Notes& notes, uint32_t n_tokens, double seconds) { notes.line("Prefill: " + in_time(n_tokens, seconds)); }

void print_footer(const Notes& notes, const GenerateResult& result, uint32_t n_ctx) {
  notes.line("---");
  notes.line("Generated: " + in_time(result.tokens.size(), result.decode_s));
  notes.line("Total:     " + in_time(result.n_prompt + result.tokens.size(), result.prefill_s + result.decode_s));
  notes.line(text("Stopped: {}{}", reason(result.finish), result.finish == FinishReason::kContextFull ? text(" (n_ctx {})", n_ctx) : ""));
}

void print_timing(const GenerateResult& result, const SessionStats& stats) {
  const double n = std::max<double>(1, static_cast<double>(result.tokens.size()));
  const double all = std::max(1e-12, result.sample_s + result.forward_s);
  trace_line(
      text("[MINFER_TIMING] over {} tokens: sample {:.3f} ms/tok ({:.1f}%), forward {:.3f} ms/tok ({:.1f}%); graphs: {} builds, {} "
           "reuses, {} re-maps",
           result.tokens.size(), result.sample_s * 1e3 / n, result.sample_s * 100 / all, result.forward_s * 1e3 / n,
           result.forward_s * 100 / all, stats.builds, stats.reuses, stats.remaps));
}

std::string result_json(const Model& model, const GenerateResult& result, const SessionStats& stats, uint32_t n_ctx) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["model"] = model.general_name();
  json["text"] = result.text;
  json["tokens"] = result.tokens;
  json["n_prompt"] = result.n_prompt;
  json["n_generated"] = result.tokens.size();
  json["n_ctx"] = n_ctx;
  json["finish"] = finish_reason_name(result.finish);
  json["prefill_s"] = result.prefill_s;
  json["decode_s"] = result.decode_s;
  json["prefill_ts"] = rate(result.n_prompt, result.prefill_s);
  json["decode_ts"] = rate(static_cast<double>(result.tokens.size()), result.decode_s);
  json["builds"] = stats.builds;
  json["reuses"] = stats.reuses;
  json["remaps"] = stats.remaps;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Traces> Traces::open() {
  Traces traces;
  traces.timing_ = env("MINFER_TIMING").has_value();
  traces.rebuild_ = env("MINFER_REBUILD_TRACE").has_value();
  traces.graph_ = env("MINFER_GRAPH_TRACE").has_value();
  if (const auto path = env("MINFER_TOKEN_TRACE")) {
    traces.token_path_ = *path;
    traces.tokens_.reset(std::fopen(path->c_str(), "we"));
    if (!traces.tokens_) return io_error("MINFER_TOKEN_TRACE={}: {}", *path, std::strerror(errno));
  }
  return traces;
}

void Traces::attach(Session& session, const Model& model, GenerateCallbacks& callbacks) {
  if (rebuild_) session.on_build(trace_build);
  if (graph_)
    callbacks.on_step = [&session, &model] {
      if (session.last_graph()) trace_graph(*session.last_graph(), model);
    };
  if (tokens_)
    callbacks.on_token = [file = tokens_.get()](uint32_t position, int32_t token) {
      std::fprintf(file, "%" PRIu32 "\t%" PRId32 "\n", position, token);
    };
}

Status Traces::close() {
  std::FILE* file = tokens_.release();
  if (!file) return {};
  const bool failed = std::ferror(file) != 0;
  if (std::fclose(file) != 0 || failed) return io_error("MINFER_TOKEN_TRACE={}: {}", token_path_, std::strerror(errno));
  return {};
}

}  // namespace minfer::programs
