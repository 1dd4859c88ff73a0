/* The ABI headers alone, as C11 with warnings as errors. */
#include "minfer/abi/plugin.h"

#include "minfer/abi/abi_hash.h"

/* An error's text and a descriptor have the sizes that plugins already built rely on. */
_Static_assert(sizeof(mi_error) == 512, "mi_error");
_Static_assert(offsetof(mi_error, text) == 8, "mi_error.text");
_Static_assert(sizeof(mi_plugin_desc) == 72, "mi_plugin_desc");
_Static_assert(offsetof(mi_plugin_desc, open) == 56, "mi_plugin_desc.open");
_Static_assert(sizeof(mi_op_attrs) == 48, "mi_op_attrs");
_Static_assert(sizeof(mi_value) == 80, "mi_value");
_Static_assert(sizeof(mi_node) == 48, "mi_node");
_Static_assert(sizeof(mi_kv_layer) == 48, "mi_kv_layer");
_Static_assert(sizeof(mi_graph_view) == 88, "mi_graph_view");
_Static_assert(sizeof(mi_weight) == 88, "mi_weight");
_Static_assert(sizeof(mi_step) == 32, "mi_step");
_Static_assert(sizeof(mi_device_info) == 280, "mi_device_info");
_Static_assert(sizeof(mi_kv_copy) == 20, "mi_kv_copy");
_Static_assert(sizeof(mi_kv_rows) == 12, "mi_kv_rows");
_Static_assert(sizeof(mi_kv_rotation) == 24, "mi_kv_rotation");
_Static_assert(sizeof(mi_backend_v1) == 8 + 22 * sizeof(void*), "mi_backend_v1");
_Static_assert(sizeof(mi_arch_v1) == 8 + 6 * sizeof(void*), "mi_arch_v1");

/* For the test that C and C++ see one layout. */
size_t minfer_test_c_layout(int which) {
  const size_t sizes[] = {sizeof(mi_error),       sizeof(mi_plugin_desc), sizeof(mi_op_attrs),   sizeof(mi_value),
                          sizeof(mi_node),        sizeof(mi_step),        sizeof(mi_graph_view), sizeof(mi_weight),
                          sizeof(mi_device_info), sizeof(mi_backend_v1),  sizeof(mi_arch_v1)};
  return which < (int)(sizeof sizes / sizeof sizes[0]) ? sizes[which] : 0;
}
