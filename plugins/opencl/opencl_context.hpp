// One device with its context, its in-order queue, its programs and the word in which kernels report failures. Everything that talks to
// OpenCL goes through here; it knows nothing of graphs.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device_list.hpp"

namespace minfer::opencl {

using Mem = Handle<cl_mem>;
using SharedMem = std::shared_ptr<const Mem>;

// A value of the graph as kernels see it: two arguments.
struct Place {
  cl_mem memory = nullptr;
  cl_ulong at = 0;  // floats from the beginning
};

// A kernel with its arguments and the number of its work-items, ready to be enqueued any number of times.
struct Launch {
  Handle<cl_kernel> kernel;
  const char* name = "";
  size_t global[2] = {1, 1};  // work-items
  size_t local = 1;           // of the first dimension; the second has groups of one
};

class Context {
 public:
  explicit Context(const FoundDevice& device);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  cl_device_id device() const { return device_; }
  uint64_t largest_buffer_bytes() const { return largest_buffer_bytes_; }

  // ---- memory. Writes and reads are ordered with all other work and done when the call returns, but for enqueue_write: its source
  // must stay until the next wait. ----
  Mem alloc(uint64_t size_bytes, const char* what) const;
  Mem alloc_with(const void* data, uint64_t size_bytes, const char* what) const;
  void write(cl_mem mem, uint64_t offset, const void* src, uint64_t size_bytes) const;
  void enqueue_write(cl_mem mem, const void* src, uint64_t size_bytes) const;
  void read(cl_mem mem, uint64_t offset, void* dst, uint64_t size_bytes) const;

  // ---- kernels ----
  // kv_format 0, 1 or 8: of the program of that format, which is built when first asked for; kNoFormat: of the program of all others.
  static constexpr uint32_t kNoFormat = MI_NONE;
  void build(uint32_t kv_format);
  // groups: work-groups of `local` work-items, in both dimensions. The arguments in their order: cl_mem, Place, or numbers of
  // exactly the kernel's types.
  template <class... Args>
  Launch prepare(const char* name, uint32_t kv_format, size_t groups, size_t local, size_t groups1, const Args&... args) {
    Launch launch = make(name, kv_format, groups, local, groups1);
    cl_uint index = 0;
    (add_arg(launch, index, args), ...);
    return launch;
  }
  void enqueue(const Launch& launch) const;

  // ---- waiting ----
  Handle<cl_event> marker() const;  // an event that is complete when all work before it is
  void wait(const Handle<cl_event>& event) const;
  void flush() const;  // lets the device begin
  // Waits for everything. What kernels have reported since the last call is returned once and forgotten: {0, ...} if nothing.
  struct Failure {
    int32_t code = 0;
    int32_t row = 0;
  };
  Failure finish() const;
  cl_mem status() const { return status_.get(); }  // common.cl: status

 private:
  Launch make(const char* name, uint32_t kv_format, size_t groups, size_t local, size_t groups1);
  template <class T>
  void add_arg(Launch& launch, cl_uint& index, const T& value) const {
    if constexpr (std::is_same_v<T, Place>) {
      set_arg(launch, index++, sizeof value.memory, &value.memory);
      set_arg(launch, index++, sizeof value.at, &value.at);
    } else {
      static_assert(std::is_same_v<T, cl_mem> || std::is_same_v<T, cl_int> || std::is_same_v<T, cl_uint> || std::is_same_v<T, cl_ulong> ||
                    std::is_same_v<T, cl_float>);
      set_arg(launch, index++, sizeof value, &value);
    }
  }
  void set_arg(Launch& launch, cl_uint index, size_t size, const void* value) const;
  Handle<cl_program> compile(const std::string& text, const std::string& options) const;

  cl_device_id device_;
  uint64_t largest_buffer_bytes_;
  std::string build_options_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> queue_;
  std::map<uint32_t, Handle<cl_program>> programs_;  // by KV format, kNoFormat
  Mem status_;
};

}  // namespace minfer::opencl
