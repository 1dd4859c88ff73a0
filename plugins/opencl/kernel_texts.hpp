// The texts of kernels/*.cl, as the build has put them into the library.
#pragma once

namespace minfer::opencl {

extern const char k_common[];  // stands in front of each of the others
extern const char k_rows[];
extern const char k_matmul[];
extern const char k_kv[];

}  // namespace minfer::opencl
