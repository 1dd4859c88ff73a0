#include "opencl_api.hpp"

#include <dlfcn.h>

namespace minfer::opencl {
namespace {

Api load() {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    sdk::fail(MI_NOT_FOUND, "OpenCL is not installed (", reason ? reason : "libOpenCL.so.1 cannot be loaded",
              "); install the OpenCL driver of your device (Debian: ocl-icd-libopencl1 and the driver's package)");
  }
  Api out;
#define MINFER_OPENCL_LOAD(name)                                          \
  out.name = reinterpret_cast<decltype(out.name)>(dlsym(library, #name)); \
  if (!out.name) sdk::fail(MI_NOT_FOUND, "libOpenCL.so.1 has no function " #name ": OpenCL 1.2 is needed");
  MINFER_OPENCL_FUNCTIONS(MINFER_OPENCL_LOAD)
#undef MINFER_OPENCL_LOAD
  return out;
}

int32_t code_of(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE: return MI_OUT_OF_MEMORY;
    case CL_DEVICE_NOT_AVAILABLE: return MI_DEVICE_LOST;
    case CL_DEVICE_NOT_FOUND: return MI_NOT_FOUND;
    default: return MI_INTERNAL;
  }
}

}  // namespace

const Api& api() {
  static const Api loaded = load();  // tried again by the next call where it throws
  return loaded;
}

const char* error_name(cl_int code) {
#define MINFER_OPENCL_NAME(name) \
  case name: return #name;
  switch (code) {
    MINFER_OPENCL_NAME(CL_DEVICE_NOT_FOUND)
    MINFER_OPENCL_NAME(CL_DEVICE_NOT_AVAILABLE)
    MINFER_OPENCL_NAME(CL_COMPILER_NOT_AVAILABLE)
    MINFER_OPENCL_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    MINFER_OPENCL_NAME(CL_OUT_OF_RESOURCES)
    MINFER_OPENCL_NAME(CL_OUT_OF_HOST_MEMORY)
    MINFER_OPENCL_NAME(CL_BUILD_PROGRAM_FAILURE)
    MINFER_OPENCL_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    MINFER_OPENCL_NAME(CL_INVALID_VALUE)
    MINFER_OPENCL_NAME(CL_INVALID_DEVICE)
    MINFER_OPENCL_NAME(CL_INVALID_CONTEXT)
    MINFER_OPENCL_NAME(CL_INVALID_COMMAND_QUEUE)
    MINFER_OPENCL_NAME(CL_INVALID_MEM_OBJECT)
    MINFER_OPENCL_NAME(CL_INVALID_BUILD_OPTIONS)
    MINFER_OPENCL_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    MINFER_OPENCL_NAME(CL_INVALID_KERNEL_NAME)
    MINFER_OPENCL_NAME(CL_INVALID_KERNEL)
    MINFER_OPENCL_NAME(CL_INVALID_ARG_INDEX)
    MINFER_OPENCL_NAME(CL_INVALID_ARG_VALUE)
    MINFER_OPENCL_NAME(CL_INVALID_ARG_SIZE)
    MINFER_OPENCL_NAME(CL_INVALID_KERNEL_ARGS)
    MINFER_OPENCL_NAME(CL_INVALID_WORK_GROUP_SIZE)
    MINFER_OPENCL_NAME(CL_INVALID_WORK_ITEM_SIZE)
    MINFER_OPENCL_NAME(CL_INVALID_GLOBAL_WORK_SIZE)
    MINFER_OPENCL_NAME(CL_INVALID_EVENT)
    MINFER_OPENCL_NAME(CL_INVALID_OPERATION)
    MINFER_OPENCL_NAME(CL_INVALID_BUFFER_SIZE)
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "an unknown error";
  }
#undef MINFER_OPENCL_NAME
}

void fail_with(cl_int code, const std::string& what) { sdk::fail(code_of(code), what, ": ", error_name(code), " (", code, ")"); }

}  // namespace minfer::opencl
