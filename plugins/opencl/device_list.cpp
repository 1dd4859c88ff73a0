#include "device_list.hpp"

#include <algorithm>

namespace minfer::opencl {
namespace {

constexpr cl_int kNoPlatform = -1001;  // of the loader, where no driver is installed

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  check(api().clGetPlatformInfo(platform, what, 0, nullptr, &size), "clGetPlatformInfo");
  std::string text(size, '\0');
  check(api().clGetPlatformInfo(platform, what, size, text.data(), nullptr), "clGetPlatformInfo");
  return text.c_str();
}

std::vector<FoundDevice> all_devices() {
  cl_uint n_platforms = 0;
  const cl_int code = api().clGetPlatformIDs(0, nullptr, &n_platforms);
  if (code != kNoPlatform) check(code, "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(code == kNoPlatform ? 0 : n_platforms);
  if (!platforms.empty()) check(api().clGetPlatformIDs(n_platforms, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<FoundDevice> found;
  for (cl_platform_id platform : platforms) {
    cl_uint n_devices = 0;
    const cl_int listed = api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n_devices);
    if (listed == CL_DEVICE_NOT_FOUND || n_devices == 0) continue;
    check(listed, "clGetDeviceIDs");
    std::vector<cl_device_id> devices(n_devices);
    check(api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n_devices, devices.data(), nullptr), "clGetDeviceIDs");
    for (cl_device_id device : devices)
      found.push_back({platform, device, platform_text(platform, CL_PLATFORM_NAME), device_text(device, CL_DEVICE_NAME),
                       device_value<cl_device_type>(device, CL_DEVICE_TYPE)});
  }
  return found;
}

const char* type_name(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return "GPU";
  if (type & CL_DEVICE_TYPE_ACCELERATOR) return "accelerator";
  return type & CL_DEVICE_TYPE_CPU ? "processor" : "other";
}

int rank(const FoundDevice& device) {
  if (device.type & CL_DEVICE_TYPE_GPU) return 0;
  return device.type & CL_DEVICE_TYPE_ACCELERATOR ? 1 : 2;
}

std::string list_of(const std::vector<FoundDevice>& devices) {
  std::string text;
  for (const FoundDevice& d : devices)
    text += sdk::join(text.empty() ? "" : ", ", "'", d.name, "' (", type_name(d.type), ", platform '", d.platform_name, "')");
  return text;
}

// Keeps the entries whose name holds `wanted`, or entry number `wanted` of the names as they follow one another.
void keep(std::vector<FoundDevice>& devices, const char* option, const std::string& wanted, std::string FoundDevice::*name, bool numbered) {
  if (wanted.empty()) return;
  const bool is_number = wanted.find_first_not_of("0123456789") == std::string::npos && wanted.size() < 6;
  std::vector<FoundDevice> kept;
  size_t number = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i > 0) number += numbered || devices[i].platform != devices[i - 1].platform;
    if (is_number ? number == std::stoul(wanted) : (devices[i].*name).find(wanted) != std::string::npos) kept.push_back(devices[i]);
  }
  if (kept.empty()) sdk::fail(MI_NOT_FOUND, "option ", option, ": nothing is '", wanted, "' among ", list_of(devices));
  devices = std::move(kept);
}

}  // namespace

std::string device_text(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  check(api().clGetDeviceInfo(device, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  check(api().clGetDeviceInfo(device, what, size, text.data(), nullptr), "clGetDeviceInfo");
  return text.c_str();
}

FoundDevice choose_device(const DeviceChoice& choice) {
  std::vector<FoundDevice> devices = all_devices();
  if (devices.empty()) sdk::fail(MI_NOT_FOUND, "no OpenCL device: no driver is installed, or none finds a device");
  const std::vector<FoundDevice> all = devices;
  keep(devices, "platform", choice.platform, &FoundDevice::platform_name, false);
  if (!choice.allow_cpu) {
    devices.erase(std::remove_if(devices.begin(), devices.end(), [](const FoundDevice& d) { return rank(d) > 1; }), devices.end());
    if (devices.empty())
      sdk::fail(MI_NOT_FOUND, "no GPU and no accelerator among the OpenCL devices: ", list_of(all),
                "; option allow_cpu: true admits processors");
  }
  keep(devices, "device", choice.device, &FoundDevice::name, true);
  return *std::min_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

}  // namespace minfer::opencl
