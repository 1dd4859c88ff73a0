#include "programs/progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/env.hpp"
#include "base/error.hpp"

namespace minfer::programs {
namespace {

constexpr double kQuietSeconds = 0.5;  // work that ends within this shows nothing
constexpr double kSecondsPerUpdate = 0.1;
constexpr double kTimeLeftFrom = 1.0;  // seconds of work behind a guess of the time left
constexpr std::string_view kEraseToEnd = "\x1b[K";

ProgressLine* visible_line = nullptr;

std::string duration(double seconds) {
  const auto whole = static_cast<uint64_t>(std::max(1.0, std::round(seconds)));
  return whole < 60 ? text("{} s", whole) : text("{}:{:02} min", whole / 60, whole % 60);
}

}  // namespace

std::optional<ProgressTerminal> progress_terminal() {
  const std::string kind = env("TERM").value_or("");
  if (::isatty(STDERR_FILENO) == 0 || kind.empty() || kind == "dumb") return std::nullopt;
  ProgressTerminal terminal;
  terminal.seconds = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  terminal.columns = []() -> unsigned {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  };
  terminal.write = [](std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stderr); };
  return terminal;
}

ProgressLine::ProgressLine(std::string what, Unit unit, std::optional<ProgressTerminal> terminal)
    : what_(std::move(what)), unit_(unit), terminal_(std::move(terminal)) {}

void ProgressLine::update(uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const double now = terminal_->seconds();
  if (!working_ || done < done_) begun_ = now;
  if (done != done_) came_here_ = now;
  done_ = done;
  total_ = total;
  working_ = done < total;
  if (working_) return tick();
  done_ = 0;
  erase();
}

void ProgressLine::tick() {
  if (!working_) return;
  const double now = terminal_->seconds();
  if (now - begun_ >= kQuietSeconds && (!visible_ || now - drawn_ >= kSecondsPerUpdate)) draw(now);
}

void ProgressLine::draw(double now) {
  std::string shown = line(now);
  const unsigned columns = terminal_->columns();
  if (columns > 0 && shown.size() >= columns) shown.resize(columns - 1);  // the last column would wrap on some terminals
  terminal_->write(text("\r{}{}", shown, kEraseToEnd));
  drawn_ = now;
  visible_ = true;
  visible_line = this;
}

std::string ProgressLine::line(double now) const {
  const bool bytes = unit_ == Unit::kBytes;
  const uint64_t scale = bytes ? 1'000'000 : 1;
  std::string out = text("{}: {} of {} {}", what_, done_ / scale, total_ / scale, bytes ? "MB" : "tokens");
  const double took = came_here_ - begun_;
  if (done_ == 0 || took <= 0) return out;
  const double rate = static_cast<double>(done_) / took;
  if (!bytes) out += text(", {:.1f} tok/s", rate);
  const double left = static_cast<double>(total_ - done_) / rate - (now - came_here_);
  if (now - begun_ >= kTimeLeftFrom && left > 0) out += text(", {} left", duration(left));
  return out;
}

void ProgressLine::erase() {
  if (!visible_) return;
  terminal_->write(text("\r{}", kEraseToEnd));
  visible_ = false;
  if (visible_line == this) visible_line = nullptr;
}

void erase_progress_line() {
  if (visible_line) visible_line->erase();
}

}  // namespace minfer::programs
