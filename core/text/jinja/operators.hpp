// Python's operators over template values: arithmetic, comparison, membership, indexing, slicing, iteration.
// Errors are texts without a place; the evaluator adds it. Knows nothing of syntax.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

std::string_view symbol(BinaryOp op);
std::string_view symbol(CompareOp op);

Result<Value> binary(Runtime& rt, BinaryOp op, const Value& a, const Value& b);
Result<Value> negate(const Value& a);
Result<Value> positive(const Value& a);

Result<bool> compare(Runtime& rt, CompareOp op, const Value& a, const Value& b);
Result<bool> equals(Runtime& rt, const Value& a, const Value& b);
Result<bool> less(Runtime& rt, const Value& a, const Value& b);
Result<bool> contains(Runtime& rt, const Value& container, const Value& item);
// Equality of dict keys: strings, numbers, None; tuples by their items.
bool same_key(const Value& a, const Value& b);

// All items of an iterable: characters of a string, keys of a dict, nothing of Undefined. What an iterator gives, it has no more.
Result<std::vector<Value>> items_of(Runtime& rt, const Value& value);
Result<int64_t> length_of(const Value& value);

// a[b] without attributes: nullopt where Python raises TypeError or LookupError.
Result<std::optional<Value>> subscript(const Value& object, const Value& key);
// object[start:stop:step]; absent parts are None.
Result<Value> slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step);

// & < > ' " as HTML entities.
std::string escape_html(std::string_view s);

}  // namespace minfer::jinja
