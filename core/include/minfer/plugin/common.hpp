// minfer plugin SDK: what backends and architectures share. Header-only C++17; needs nothing but minfer/abi.
//
// Inside a plugin errors are exceptions: throw sdk::Error (or call fail). Every entry point is a noexcept thunk that turns
// whatever was thrown into a code and a text, so nothing is thrown across the boundary. All symbols are hidden and live in
// an inline namespace of the ABI version, so two plugins built from different versions never share code.
#ifndef MINFER_PLUGIN_COMMON_HPP_
#define MINFER_PLUGIN_COMMON_HPP_

#include <charconv>
#include <cstring>
#include <limits>
#include <locale>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "minfer/abi/abi_hash.h"
#include "minfer/abi/plugin.h"
#include "minfer/plugin/namespace.hpp"

// For people: how a plugin was built. The build system may say more.
#ifndef MINFER_PLUGIN_BUILD
#define MINFER_PLUGIN_BUILD __VERSION__
#endif

MINFER_SDK_BEGIN

// What a plugin throws to fail a call: a MI_* code and one line of text.
class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& text) : std::runtime_error(text), code_(code) {}
  int32_t code() const { return code_; }

 private:
  int32_t code_;
};

// The parts printed one after another, numbers the same way in every locale.
template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (void)(out << ... << parts);
  return std::move(out).str();
}
template <class... Parts>
[[noreturn]] void fail(int32_t code, const Parts&... parts) {
  throw Error(code, join(parts...));
}

inline mi_string to_abi(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view from_abi(mi_string text) { return {text.data, static_cast<size_t>(text.size)}; }

// Copies text into a field of a fixed size: cut at a character, zero-terminated, on one line.
inline void copy_text(char* field, size_t field_size, std::string_view text) noexcept {
  if (field_size == 0) return;
  size_t size = text.size() < field_size - 1 ? text.size() : field_size - 1;
  if (size < text.size())
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  for (size_t i = 0; i < size; ++i) field[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
  field[size] = 0;
}

inline int32_t report(mi_error* error, int32_t code, std::string_view text) noexcept {
  if (error && error->struct_size > offsetof(mi_error, text)) {
    error->code = code;
    const size_t room = error->struct_size - offsetof(mi_error, text);
    copy_text(error->text, room < sizeof error->text ? room : sizeof error->text, text);
  }
  return code;
}

// Runs the body of an entry point. The one place where exceptions become codes.
template <class Body>
int32_t guarded(mi_error* error, Body&& body) noexcept {
  try {
    body();
    return MI_OK;
  } catch (const Error& e) {
    return report(error, e.code() == MI_OK ? MI_INTERNAL : e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return report(error, MI_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return report(error, MI_INTERNAL, e.what());
  } catch (...) {
    return report(error, MI_INTERNAL, "an exception of an unknown type was thrown");
  }
}

// The host's services. Valid from the plugin's open to its close; cheap to copy. From one thread at a time.
class Host {
 public:
  explicit Host(const mi_host_v1* host) : host_(host) {}

  void log(uint32_t level, std::string_view text) const { host_->log(host_->ctx, level, to_abi(text)); }
  template <class... Parts>
  void info(const Parts&... parts) const {
    log(MI_LOG_INFO, join(parts...));
  }
  template <class... Parts>
  void warn(const Parts&... parts) const {
    log(MI_LOG_WARN, join(parts...));
  }

  // The plugin's own options. Ask for every option that exists while opening: the host refuses those never asked for.
  std::optional<std::string> option(std::string_view key) const {
    mi_string value{};
    if (host_->config_get(host_->ctx, to_abi(key), &value) != MI_OK) return std::nullopt;
    return std::string(from_abi(value));
  }
  // A whole number in [min, max], or nothing where the option is absent or "auto".
  std::optional<uint64_t> option_uint(std::string_view key, uint64_t min, uint64_t max) const {
    const std::optional<std::string> text = option(key);
    if (!text || *text == "auto") return std::nullopt;
    uint64_t value = 0;
    const char* end = text->data() + text->size();
    const auto [stop, ec] = std::from_chars(text->data(), end, value);
    if (ec != std::errc() || stop != end || value < min || value > max)
      fail(MI_INVALID_ARGUMENT, "option ", key, ": '", *text, "' is not a whole number from ", min, " to ", max, " or auto");
    return value;
  }
  bool option_bool(std::string_view key, bool otherwise) const {
    const std::optional<std::string> text = option(key);
    if (!text) return otherwise;
    if (*text == "true") return true;
    if (*text == "false") return false;
    fail(MI_INVALID_ARGUMENT, "option ", key, ": '", *text, "' is neither true nor false");
  }

 private:
  const mi_host_v1* host_;
};

// Element i of an array whose elements may be larger than this header knows.
template <class T>
const T& element(const T* array, uint64_t stride, uint64_t i) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(array) + i * stride);
}

MINFER_SDK_END

// The one exported symbol of a plugin. `table` is a constant of static storage, Class is made from a `const Host&`.
#define MINFER_EXPORT_PLUGIN(Class, Base, table, kind, name, version)                                                                \
  extern "C" __attribute__((visibility("default"))) const mi_plugin_desc* MI_PLUGIN_QUERY(void) {                                    \
    struct Entry {                                                                                                                   \
      static int32_t open(const mi_host_v1* host, void** out_self, const void** out_table, mi_error* error) noexcept {               \
        return ::minfer::sdk::guarded(error, [&] {                                                                                   \
          *out_self = static_cast<Base*>(new Class(::minfer::sdk::Host(host)));                                                      \
          *out_table = &(table);                                                                                                     \
        });                                                                                                                          \
      }                                                                                                                              \
      static void close(void* self) noexcept { delete static_cast<Base*>(self); }                                                    \
    };                                                                                                                               \
    static constexpr mi_plugin_desc desc = {sizeof(mi_plugin_desc), MI_ABI_MAJOR, MI_ABI_MINOR, 0,           kind, 0, name, version, \
                                            MINFER_PLUGIN_BUILD,    MI_ABI_HASH,  Entry::open,  Entry::close};                       \
    return &desc;                                                                                                                    \
  }

#endif
