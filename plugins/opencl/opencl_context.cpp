#include "opencl_context.hpp"

#include <algorithm>

#include "kernel_texts.hpp"

namespace minfer::opencl {
namespace {

constexpr int32_t kNoFailure[2] = {0, std::numeric_limits<int32_t>::max()};

}  // namespace

Context::Context(const FoundDevice& device)
    : device_(device.device), largest_buffer_bytes_(device_value<cl_ulong>(device.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE)) {
  constexpr size_t kGroup = 64;  // the largest that kernels demand
  if (const size_t most = device_value<size_t>(device_, CL_DEVICE_MAX_WORK_GROUP_SIZE); most < kGroup)
    sdk::fail(MI_UNSUPPORTED, "'", device.name, "' takes ", most, " work-items in a group; ", kGroup, " are needed");
  // No fast-math option: sums and products are defined to the bit, and so are quotients and roots where the device can.
  build_options_ = "-cl-std=CL1.2";
  if (device_value<cl_device_fp_config>(device_, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    build_options_ += " -cl-fp32-correctly-rounded-divide-sqrt";

  cl_int code = CL_SUCCESS;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(device.platform), 0};
  context_ = {api().clCreateContext(properties, 1, &device_, nullptr, nullptr, &code), api().clReleaseContext};
  check(code, "clCreateContext on '", device.name, "'");
  queue_ = {api().clCreateCommandQueue(context_.get(), device_, 0, &code), api().clReleaseCommandQueue};
  check(code, "clCreateCommandQueue on '", device.name, "'");
  status_ = alloc_with(kNoFailure, sizeof kNoFailure, "the failure report");
  build(kNoFormat);
}

Mem Context::alloc(uint64_t size_bytes, const char* what) const {
  if (size_bytes > largest_buffer_bytes_)
    sdk::fail(MI_OUT_OF_MEMORY, "a buffer of ", size_bytes, " bytes for ", what, ": the device's largest has ", largest_buffer_bytes_);
  cl_int code = CL_SUCCESS;
  Mem mem(api().clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, std::max<uint64_t>(size_bytes, 1), nullptr, &code),
          api().clReleaseMemObject);
  check(code, "clCreateBuffer of ", size_bytes, " bytes for ", what);
  return mem;
}

Mem Context::alloc_with(const void* data, uint64_t size_bytes, const char* what) const {
  Mem mem = alloc(size_bytes, what);
  write(mem.get(), 0, data, size_bytes);
  return mem;
}

void Context::write(cl_mem mem, uint64_t offset, const void* src, uint64_t size_bytes) const {
  if (size_bytes == 0) return;
  check(api().clEnqueueWriteBuffer(queue_.get(), mem, CL_TRUE, offset, size_bytes, src, 0, nullptr, nullptr), "clEnqueueWriteBuffer of ",
        size_bytes, " bytes");
}

void Context::enqueue_write(cl_mem mem, const void* src, uint64_t size_bytes) const {
  if (size_bytes == 0) return;
  check(api().clEnqueueWriteBuffer(queue_.get(), mem, CL_FALSE, 0, size_bytes, src, 0, nullptr, nullptr), "clEnqueueWriteBuffer of ",
        size_bytes, " bytes");
}

void Context::read(cl_mem mem, uint64_t offset, void* dst, uint64_t size_bytes) const {
  if (size_bytes == 0) return;
  check(api().clEnqueueReadBuffer(queue_.get(), mem, CL_TRUE, offset, size_bytes, dst, 0, nullptr, nullptr), "clEnqueueReadBuffer of ",
        size_bytes, " bytes");
}

Handle<cl_program> Context::compile(const std::string& text, const std::string& options) const {
  cl_int code = CL_SUCCESS;
  const char* source = text.c_str();
  Handle<cl_program> program(api().clCreateProgramWithSource(context_.get(), 1, &source, nullptr, &code), api().clReleaseProgram);
  check(code, "clCreateProgramWithSource");
  code = api().clBuildProgram(program.get(), 1, &device_, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  size_t size = 0;
  std::string log;
  if (api().clGetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) == CL_SUCCESS && size > 0) {
    log.resize(size);
    api().clGetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  }
  fail_with(code, sdk::join("the device's compiler refused the kernels (", options, "): ", log.c_str()));
}

void Context::build(uint32_t kv_format) {
  Handle<cl_program>& program = programs_[kv_format];
  if (program) return;
  if (kv_format == kNoFormat)
    program = compile(std::string(k_common) + k_rows + k_matmul, build_options_);
  else
    program = compile(std::string(k_common) + k_kv, sdk::join(build_options_, " -DKV_FORMAT=", kv_format));
}

Launch Context::make(const char* name, uint32_t kv_format, size_t groups, size_t local, size_t groups1) {
  build(kv_format);
  cl_int code = CL_SUCCESS;
  Launch launch;
  launch.kernel = {api().clCreateKernel(programs_[kv_format].get(), name, &code), api().clReleaseKernel};
  check(code, "clCreateKernel ", name);
  launch.name = name;
  launch.local = local;
  launch.global[0] = groups * local;
  launch.global[1] = groups1;
  return launch;
}

void Context::set_arg(Launch& launch, cl_uint index, size_t size, const void* value) const {
  check(api().clSetKernelArg(launch.kernel.get(), index, size, value), "clSetKernelArg ", index, " of ", launch.name);
}

void Context::enqueue(const Launch& launch) const {
  if (launch.global[0] == 0 || launch.global[1] == 0) return;
  const size_t local[2] = {launch.local, 1};
  check(api().clEnqueueNDRangeKernel(queue_.get(), launch.kernel.get(), 2, nullptr, launch.global, local, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel of ", launch.name);
}

Handle<cl_event> Context::marker() const {
  cl_event event = nullptr;
  check(api().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  Handle<cl_event> out(event, api().clReleaseEvent);
  flush();
  return out;
}

void Context::flush() const { check(api().clFlush(queue_.get()), "clFlush"); }

void Context::wait(const Handle<cl_event>& event) const {
  const cl_event one = event.get();
  if (one) check(api().clWaitForEvents(1, &one), "clWaitForEvents");
}

Context::Failure Context::finish() const {
  check(api().clFinish(queue_.get()), "clFinish");
  int32_t words[2];
  read(status_.get(), 0, words, sizeof words);
  if (words[0] != 0) write(status_.get(), 0, kNoFailure, sizeof kNoFailure);
  return {words[0], words[1]};
}

}  // namespace minfer::opencl
