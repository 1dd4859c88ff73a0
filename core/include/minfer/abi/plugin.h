/* minfer plugin ABI: what a plugin's shared library exports, and what the host gives it.
 *
 * A plugin is one shared library and one manifest beside it. It exports exactly one symbol, MI_PLUGIN_QUERY, a pure function that
 * returns static data: no allocation, no thread, no device is touched. The descriptor states facts; every comparison is
 * made by the host, before open is called.
 */
#ifndef MINFER_ABI_PLUGIN_H_
#define MINFER_ABI_PLUGIN_H_

#include "minfer/abi/arch.h"
#include "minfer/abi/backend.h"

#define MI_PLUGIN_BACKEND 1u
#define MI_PLUGIN_ARCHITECTURE 2u

#define MI_LOG_DEBUG 0u
#define MI_LOG_INFO 1u
#define MI_LOG_WARN 2u

/* Services of the host. Valid from open to close. Nothing here is called per element or per operation. */
typedef struct mi_host_v1 {
  uint32_t struct_size;
  uint32_t abi_minor; /* of the host */
  void* ctx;
  void (*log)(void* ctx, uint32_t level, mi_string text);
  /* The plugin's own options from the configuration, as text. MI_NOT_FOUND: not given. An option that a plugin never asks for
   * during open and device_open is refused by the host as unknown. */
  int32_t (*config_get)(void* ctx, mi_string key, mi_string* out);
} mi_host_v1;

typedef struct mi_plugin_desc {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;      /* the plugin was built with */
  uint32_t min_host_minor; /* the plugin cannot do without */
  uint32_t kind;
  uint32_t reserved;
  const char* name;     /* "cpu"; equals the manifest's */
  const char* version;  /* "1.2.0" */
  const char* build;    /* compiler and flags, for people */
  const char* abi_hash; /* MI_ABI_HASH of minfer/abi/abi_hash.h: SHA-256 of the ABI headers it was built from */
  /* *out_table points to a mi_backend_v1 or mi_arch_v1 that lives until close; *out_self goes into its calls. */
  int32_t (*open)(const mi_host_v1* host, void** out_self, const void** out_table, mi_error* error);
  void (*close)(void* self);
} mi_plugin_desc;

#define MI_PLUGIN_QUERY minfer_plugin_query_v1
#define MI_PLUGIN_QUERY_NAME "minfer_plugin_query_v1"
typedef const mi_plugin_desc* (*mi_plugin_query_fn)(void);

#endif
