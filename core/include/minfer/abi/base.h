/* minfer plugin ABI: words that every other header uses.
 *
 * C11 and C++17, no dependencies. Rules of the boundary:
 * - every struct that crosses starts with struct_size = sizeof(that struct) as its maker knew it; a field F may be read
 *   only where struct_size >= offsetof(F) + sizeof(F); padding is explicit;
 * - arrays of structs carry the stride between elements, so that an element may grow; structs without struct_size and structs
 *   held inside another one are fixed for the whole major;
 * - enumerations cross as uint32_t; a value that the reader does not know means "unsupported";
 * - who allocates frees, through the same table; handles are opaque;
 * - strings that go in are {data, size}, valid for the duration of the call, not zero-terminated;
 * - a fallible function returns a MI_* code and, when it is not MI_OK, fills the caller's mi_error (which may be NULL);
 *   nothing is thrown, no process is ended, in either direction.
 */
#ifndef MINFER_ABI_BASE_H_
#define MINFER_ABI_BASE_H_

#include <stddef.h>
#include <stdint.h>

/* Major: a break, part of the query symbol's name. Minor: fields and values were appended. */
#define MI_ABI_MAJOR 1
#define MI_ABI_MINOR 0

/* Whether *ptr is large enough to hold the field: true for every field of the minor that both sides know. */
#define MI_HAS_FIELD(type, ptr, field) ((ptr)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))

#define MI_NONE 0xffffffffu /* no value, no layer, no block */

/* Return codes. */
#define MI_OK 0
#define MI_INVALID_ARGUMENT 1
#define MI_UNSUPPORTED 2
#define MI_NOT_FOUND 3
#define MI_OUT_OF_MEMORY 4
#define MI_DEVICE_LOST 5
#define MI_CANCELLED 6
#define MI_INTERNAL 7
#define MI_IO 8

typedef struct mi_string {
  const char* data;
  uint64_t size;
} mi_string;

/* Owned by the caller of a fallible function. text is zero-terminated UTF-8, one line. */
typedef struct mi_error {
  uint32_t struct_size;
  int32_t code;
  char text[504];
} mi_error;

/* Types of elements. The numbers are those of the GGUF format. Weights of any type may be handed to a backend, which
 * answers in `supports` whether it can compute with them. Activations are MI_TYPE_F32, inputs MI_TYPE_I32. */
#define MI_TYPE_F32 0u
#define MI_TYPE_F16 1u
#define MI_TYPE_Q4_0 2u
#define MI_TYPE_Q4_1 3u
#define MI_TYPE_Q5_0 6u
#define MI_TYPE_Q5_1 7u
#define MI_TYPE_Q8_0 8u
#define MI_TYPE_Q2_K 10u
#define MI_TYPE_Q3_K 11u
#define MI_TYPE_Q4_K 12u
#define MI_TYPE_Q5_K 13u
#define MI_TYPE_Q6_K 14u
#define MI_TYPE_I32 26u
#define MI_TYPE_BF16 30u

#endif
