// Dates as text under the C locale.
#include "text/jinja/strftime.hpp"

#include "base/error.hpp"

namespace minfer::jinja {

namespace {

constexpr std::string_view kDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};

// A number in `width` digits, padded with zeros, spaces ('_') or nothing ('-').
std::string padded(int value, int width, char flag, char usual = '0') {
  std::string digits = std::to_string(value);
  const char fill = flag == '_' ? ' ' : flag == '0' ? '0' : usual;
  while (flag != '-' && static_cast<int>(digits.size()) < width) digits.insert(digits.begin(), fill);
  return digits;
}

bool leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

// ISO 8601 week and its year.
std::pair<int, int> iso_week(const std::tm& t) {
  const int weekday = (t.tm_wday + 6) % 7;  // Monday 0
  int year = t.tm_year + 1900;
  int week = (t.tm_yday - weekday + 10) / 7;
  const auto weeks_in = [](int y) {
    const auto p = [](int z) { return (z + z / 4 - z / 100 + z / 400) % 7; };
    return p(y) == 4 || p(y - 1) == 3 ? 53 : 52;
  };
  if (week < 1) return {weeks_in(year - 1), year - 1};
  if (week > weeks_in(year)) return {1, year + 1};
  return {week, year};
}

int64_t seconds_since_1970(const std::tm& t) {
  int64_t days = t.tm_yday;
  const int year = t.tm_year + 1900;
  for (int y = 1970; y < year; ++y) days += leap(y) ? 366 : 365;
  return ((days * 24 + t.tm_hour) * 60 + t.tm_min) * 60 + t.tm_sec;
}

}  // namespace

std::string format_time(std::string_view format, const std::tm& t) {
  const auto sub = [&t](std::string_view f) { return format_time(f, t); };
  const auto name = [](const auto& names, int i) { return std::string(i >= 0 && i < static_cast<int>(std::size(names)) ? names[i] : "?"); };
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      out += format[i];
      continue;
    }
    const size_t begin = i++;
    const char flag = format[i] == '-' || format[i] == '_' || format[i] == '0' ? format[i] : '\0';
    if (flag && i + 1 < format.size()) ++i;
    const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
    switch (format[i]) {
      case 'a': out += name(kDays, t.tm_wday).substr(0, 3); break;
      case 'A': out += name(kDays, t.tm_wday); break;
      case 'b':
      case 'h': out += name(kMonths, t.tm_mon).substr(0, 3); break;
      case 'B': out += name(kMonths, t.tm_mon); break;
      case 'c': out += sub("%a %b %e %H:%M:%S %Y"); break;
      case 'C': out += padded((t.tm_year + 1900) / 100, 2, flag); break;
      case 'd': out += padded(t.tm_mday, 2, flag); break;
      case 'D':
      case 'x': out += sub("%m/%d/%y"); break;
      case 'e': out += padded(t.tm_mday, 2, flag, ' '); break;
      case 'f': out += "000000"; break;
      case 'F': out += sub("%Y-%m-%d"); break;
      case 'g': out += padded(iso_week(t).second % 100, 2, flag); break;
      case 'G': out += padded(iso_week(t).second, 4, flag); break;
      case 'H': out += padded(t.tm_hour, 2, flag); break;
      case 'I': out += padded(hour12, 2, flag); break;
      case 'j': out += padded(t.tm_yday + 1, 3, flag); break;
      case 'k': out += padded(t.tm_hour, 2, flag, ' '); break;
      case 'l': out += padded(hour12, 2, flag, ' '); break;
      case 'm': out += padded(t.tm_mon + 1, 2, flag); break;
      case 'M': out += padded(t.tm_min, 2, flag); break;
      case 'n': out += '\n'; break;
      case 'p': out += t.tm_hour < 12 ? "AM" : "PM"; break;
      case 'P': out += t.tm_hour < 12 ? "am" : "pm"; break;
      case 'r': out += sub("%I:%M:%S %p"); break;
      case 'R': out += sub("%H:%M"); break;
      case 's': out += std::to_string(seconds_since_1970(t)); break;
      case 'S': out += padded(t.tm_sec, 2, flag); break;
      case 't': out += '\t'; break;
      case 'T':
      case 'X': out += sub("%H:%M:%S"); break;
      case 'u': out += std::to_string(t.tm_wday == 0 ? 7 : t.tm_wday); break;
      case 'U': out += padded((t.tm_yday + 7 - t.tm_wday) / 7, 2, flag); break;
      case 'V': out += padded(iso_week(t).first, 2, flag); break;
      case 'w': out += std::to_string(t.tm_wday); break;
      case 'W': out += padded((t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7, 2, flag); break;
      case 'y': out += padded((t.tm_year + 1900) % 100, 2, flag); break;
      case 'Y': out += padded(t.tm_year + 1900, 4, flag == '\0' ? '-' : flag); break;
      case 'z':
      case 'Z': break;
      case '%': out += '%'; break;
      default: out += format.substr(begin, i - begin + 1);
    }
  }
  return out;
}

}  // namespace minfer::jinja
