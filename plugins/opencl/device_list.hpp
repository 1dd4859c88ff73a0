// Which OpenCL device to use: what the machine has, and what the options admit.
#pragma once

#include <vector>

#include "opencl_api.hpp"

namespace minfer::opencl {

struct DeviceChoice {
  std::string platform;  // empty: any; an index, or a part of the name
  std::string device;    // the same, among the devices that are left
  bool allow_cpu = false;
};

struct FoundDevice {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  std::string platform_name;
  std::string name;
  cl_device_type type = 0;
};

// The best device that the choice admits: a GPU before an accelerator before a processor, else in the order of the platforms.
// Throws sdk::Error, naming what there is, where none is left.
FoundDevice choose_device(const DeviceChoice& choice);

std::string device_text(cl_device_id device, cl_device_info what);  // a property that is text
template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  check(api().clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

}  // namespace minfer::opencl
