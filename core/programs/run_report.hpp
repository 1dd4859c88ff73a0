// Everything that minfer-run says about a run beside its text: header, footer, traces, JSON. Measures nothing itself.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "engine/session.hpp"
#include "runtime/generate.hpp"
#include "runtime/model.hpp"

namespace minfer::programs {

// Lines for people on standard error; none when quiet.
class Notes {
 public:
  explicit Notes(bool quiet) : quiet_(quiet) {}
  void line(std::string_view text) const;

 private:
  bool quiet_;
};

void print_header(const Notes& notes, const Model& model);
// --meta: every key and the tensors that tell most about a model, on standard error.
void print_meta(const Model& model);
void print_prefill(const Notes& notes, uint32_t n_tokens, double seconds);
void print_footer(const Notes& notes, const GenerateResult& result, uint32_t n_ctx);
// The line of MINFER_TIMING.
void print_timing(const GenerateResult& result, const SessionStats& stats);
std::string result_json(const Model& model, const GenerateResult& result, const SessionStats& stats, uint32_t n_ctx);

// The traces that the environment asks for; nothing is done for those it does not.
class Traces {
 public:
  // Fails when the file of MINFER_TOKEN_TRACE cannot be written.
  static Result<Traces> open();
  // Session and model must outlive the callbacks. Sets on_step and on_token.
  void attach(Session& session, const Model& model, GenerateCallbacks& callbacks);
  bool timing() const { return timing_; }
  // Whether the token trace is whole on disk.
  Status close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  bool timing_ = false;
  bool rebuild_ = false;
  bool graph_ = false;
  std::string token_path_;
  std::unique_ptr<std::FILE, CloseFile> tokens_;
};

}  // namespace minfer::programs
