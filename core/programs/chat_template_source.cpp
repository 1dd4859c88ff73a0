#include "programs/chat_template_source.hpp"

#include <algorithm>
#include <vector>

#include "programs/prompt_source.hpp"

namespace minfer::programs {
namespace {

namespace fs = std::filesystem;

std::string shipped_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".jinja") names.push_back(at->path().stem().string());
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

fs::path template_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "share/minfer/configs/templates";
}

Result<TemplateSource> find_chat_template(const PromptConfig& prompt, std::string_view of_model, const fs::path& folder) {
  switch (prompt.chat_template) {
    case PromptTemplate::kOff: return TemplateSource{};
    case PromptTemplate::kAuto: return TemplateSource{std::string(of_model), "tokenizer.chat_template"};
    case PromptTemplate::kFile: break;
    case PromptTemplate::kName: {
      const fs::path file = folder / (prompt.template_source + ".jinja");
      std::error_code error;
      if (!fs::is_regular_file(file, error)) {
        const std::string names = shipped_names(folder);
        return not_found("there is no chat template '{}'; {}; a file is given by a name with '/' or '.'", prompt.template_source,
                         names.empty() ? text("{} holds none", folder.string()) : text("there are {}", names));
      }
      MINFER_ASSIGN(std::string bytes, read_whole_file(file.string()));
      return TemplateSource{std::move(bytes), prompt.template_source};
    }
  }
  MINFER_ASSIGN(std::string bytes, read_whole_file(prompt.template_source));
  if (bytes.empty()) return invalid("{}: the chat template is empty", prompt.template_source);
  return TemplateSource{std::move(bytes), prompt.template_source};
}

}  // namespace minfer::programs
