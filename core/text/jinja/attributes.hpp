// x.name and x[key] as Jinja's sandbox resolves them: methods, keys and items; what does not exist is Undefined.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

// Attributes first (methods of str, list, dict; loop and namespace members), then keys.
Result<Value> get_attribute(Runtime& rt, const Value& object, std::string_view name);
// Keys and indices first, then attributes.
Result<Value> get_item(Runtime& rt, const Value& object, const Value& key);

using Method = Result<Value> (*)(Runtime&, const Value& self, const Args&);
// Null when Python's type has no such method. One that exists there but not here is an error when called.
Method find_string_method(std::string_view name);
Method find_list_method(std::string_view name);
Method find_dict_method(std::string_view name);

}  // namespace minfer::jinja
