#include "plugin/abi_check.hpp"

#include "minfer/abi/abi_hash.h"

namespace minfer::plugin {
namespace {

constexpr std::string_view kRebuild = "install a plugin built for this version of minfer, or build both from the same sources";

Refusal refuse(Error error, std::string_view hint = kRebuild) { return {std::move(error), std::string(hint)}; }

std::optional<Refusal> check_hash(std::string_view hash) {
  if (hash == MI_ABI_HASH) return std::nullopt;
  return refuse(unsupported("plugin was built from ABI headers {}, this core from {}", hash.substr(0, 12),
                            std::string_view(MI_ABI_HASH).substr(0, 12)));
}

// Strings of a descriptor may be missing.
std::string_view view(const char* text) { return text ? text : ""; }

struct Slot {
  size_t offset;
  const char* name;
};

// Tables are read as their maker's size allows; a slot is one function pointer.
std::optional<Refusal> check_slots(const void* table, std::string_view what, std::initializer_list<Slot> slots) {
  if (!table) return refuse(internal_error("open gave no {} table", what));
  const uint32_t size = *static_cast<const uint32_t*>(table);
  for (const Slot& slot : slots) {
    if (size < slot.offset + sizeof(void*)) return refuse(internal_error("the {} table ends before {}", what, slot.name));
    if (!*reinterpret_cast<void* const*>(static_cast<const char*>(table) + slot.offset))
      return refuse(internal_error("the {} table lacks the function {}", what, slot.name), "report it to the plugin's author");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> check_platform(const Manifest& manifest) {
  if (manifest.platform == MINFER_PLATFORM) return std::nullopt;
  return refuse(unsupported("plugin was built for {}, this is {}", manifest.platform, MINFER_PLATFORM),
                "install the plugin for this platform");
}

std::optional<Refusal> check_manifest_abi(const Manifest& manifest) {
  if (manifest.abi_major != MI_ABI_MAJOR)
    return refuse(unsupported("plugin was built for ABI {}.{}, this core provides {}.{}", manifest.abi_major, manifest.abi_minor,
                              MI_ABI_MAJOR, MI_ABI_MINOR));
  return check_hash(manifest.abi_hash);
}

std::optional<Refusal> check_descriptor_abi(const mi_plugin_desc& desc) {
  if (!MI_HAS_FIELD(mi_plugin_desc, &desc, close))
    return refuse(unsupported("the plugin's descriptor has {} bytes, this core needs {}", desc.struct_size, sizeof(mi_plugin_desc)));
  if (desc.abi_major != MI_ABI_MAJOR)
    return refuse(unsupported("plugin was built for ABI {}.{}, this core provides {}.{}", desc.abi_major, desc.abi_minor, MI_ABI_MAJOR,
                              MI_ABI_MINOR));
  if (desc.min_host_minor > MI_ABI_MINOR)
    return refuse(unsupported("plugin needs core ABI >= {}.{}, this core provides {}.{}", desc.abi_major, desc.min_host_minor, MI_ABI_MAJOR,
                              MI_ABI_MINOR),
                  "upgrade minfer, or install an older version of the plugin");
  return check_hash(view(desc.abi_hash));
}

std::optional<Refusal> check_descriptor(const mi_plugin_desc& desc, const Manifest& manifest) {
  constexpr std::string_view hint = "manifest and library do not belong together: install the plugin again";
  const uint32_t kind = manifest.kind == Kind::kBackend ? MI_PLUGIN_BACKEND : MI_PLUGIN_ARCHITECTURE;
  if (desc.kind != kind)
    return refuse(invalid("the manifest says {}, the library is a plugin of kind {}", kind_key(manifest.kind), desc.kind), hint);
  if (view(desc.name) != manifest.name)
    return refuse(invalid("the manifest says name '{}', the library '{}'", manifest.name, view(desc.name)), hint);
  if (view(desc.version) != manifest.version)
    return refuse(invalid("the manifest says version '{}', the library '{}'", manifest.version, view(desc.version)), hint);
  if (!desc.open || !desc.close)
    return refuse(internal_error("the descriptor lacks the function {}", desc.open ? "close" : "open"), "report it to the plugin's author");
  return std::nullopt;
}

#define SLOT(field) \
  { offsetof(Table, field), #field }

std::optional<Refusal> check_table(const mi_backend_v1* table) {
  using Table = mi_backend_v1;
  return check_slots(
      table, "backend",
      {SLOT(device_count), SLOT(device_open),     SLOT(device_close), SLOT(device_info), SLOT(supports),        SLOT(weights_import),
       SLOT(weights_free), SLOT(weights_bytes),   SLOT(buffer_alloc), SLOT(buffer_free), SLOT(buffer_host_ptr), SLOT(buffer_write),
       SLOT(buffer_read),  SLOT(kv_region_bytes), SLOT(kv_copy_rows), SLOT(kv_rotate),   SLOT(kv_export),       SLOT(kv_import),
       SLOT(plan_create),  SLOT(plan_destroy),    SLOT(plan_run),     SLOT(sync)});
}

std::optional<Refusal> check_table(const mi_arch_v1* table) {
  using Table = mi_arch_v1;
  return check_slots(table, "architecture", {SLOT(match), SLOT(create), SLOT(destroy), SLOT(info), SLOT(weights), SLOT(build)});
}

#undef SLOT

}  // namespace minfer::plugin
