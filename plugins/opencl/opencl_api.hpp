// The functions of OpenCL, found at run time: nothing links the loader, so the plugin can be opened and can say what is missing on a
// machine without one. Also the one place that turns an OpenCL code into an error.
#pragma once

#include <CL/cl.h>

#include "minfer/plugin/backend.hpp"

namespace minfer::opencl {

#define MINFER_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs)              \
  X(clGetPlatformInfo)             \
  X(clGetDeviceIDs)                \
  X(clGetDeviceInfo)               \
  X(clCreateContext)               \
  X(clReleaseContext)              \
  X(clCreateCommandQueue)          \
  X(clReleaseCommandQueue)         \
  X(clCreateBuffer)                \
  X(clReleaseMemObject)            \
  X(clCreateProgramWithSource)     \
  X(clBuildProgram)                \
  X(clGetProgramBuildInfo)         \
  X(clReleaseProgram)              \
  X(clCreateKernel)                \
  X(clReleaseKernel)               \
  X(clSetKernelArg)                \
  X(clEnqueueNDRangeKernel)        \
  X(clEnqueueReadBuffer)           \
  X(clEnqueueWriteBuffer)          \
  X(clEnqueueMarkerWithWaitList)   \
  X(clWaitForEvents)               \
  X(clReleaseEvent)                \
  X(clFlush)                       \
  X(clFinish)

struct Api {
#define MINFER_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  MINFER_OPENCL_FUNCTIONS(MINFER_OPENCL_MEMBER)
#undef MINFER_OPENCL_MEMBER
};

// The functions of libOpenCL.so.1, loaded at the first call and never unloaded. Throws sdk::Error where there is no such library.
const Api& api();

const char* error_name(cl_int code);  // "CL_OUT_OF_RESOURCES"

[[noreturn]] void fail_with(cl_int code, const std::string& what);
// Throws where code is not CL_SUCCESS. what: the call, and what it was for.
template <class... Parts>
void check(cl_int code, const Parts&... what) {
  if (code != CL_SUCCESS) fail_with(code, sdk::join(what...));
}

// Owns one object of OpenCL.
template <class T>
class Handle {
 public:
  using Release = cl_int (*)(T);
  Handle() = default;
  Handle(T object, Release release) : object_(object), release_(release) {}
  Handle(Handle&& other) noexcept : object_(other.object_), release_(other.release_) { other.object_ = nullptr; }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Handle() {
    if (object_) release_(object_);
  }
  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T object_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace minfer::opencl
