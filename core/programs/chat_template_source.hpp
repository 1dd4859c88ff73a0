// The chat template that a run uses: the model file's, one of the shipped ones by name, or a file of the user's.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace minfer::programs {

struct TemplateSource {
  std::string text;  // empty: the prompt is used as it is
  std::string name;  // what messages call it
};

// Where the shipped templates lie: share/minfer/configs/templates beside the program's folder, in a build and installed.
std::filesystem::path template_folder();

// `of_model`: the template in the model file, empty where there is none. A name that is not shipped is an error that lists those
// that are.
Result<TemplateSource> find_chat_template(const PromptConfig& prompt, std::string_view of_model, const std::filesystem::path& folder);

}  // namespace minfer::programs
