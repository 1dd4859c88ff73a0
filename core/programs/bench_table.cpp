#include "programs/bench_table.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runtime/bench.hpp"

namespace minfer::programs {
namespace {

std::string percent(double part, double whole) { return whole > 0 ? text(" ({:.0f} %)", 100 * part / whole) : std::string(); }

std::string as_md(const BenchTable& table) {
  const bool probed = !table.ceilings.empty();
  std::string out =
      text("| model | size | params | backend | threads | test | t/s |{}\n| --- | ---: | ---: | --- | ---: | --- | ---: |{}\n",
           probed ? " GB/s (of best) | MAC/cycle/core (of bound) |" : "", probed ? " ---: | ---: |" : "");
  for (const BenchRow& row : table.rows) {
    const MeanDeviation ts = mean_deviation(row.samples);
    out += text("| {} | {:.2f} GiB | {:.2f} B | {} | {} | {} | {:.2f} ± {:.2f} |", table.model,
                static_cast<double>(table.bytes) / (1024.0 * 1024 * 1024), static_cast<double>(table.parameters) / 1e9, table.backend,
                row.threads, row.test, ts.mean, ts.deviation);
    if (const auto& is = row.achieved)
      out += text(" {:.1f}{} | {:.1f}{} |", is->gb_s, percent(is->gb_s, is->gb_s_best), is->macs_per_cycle,
                  percent(is->macs_per_cycle, is->macs_per_cycle_bound));
    out += '\n';
  }
  for (const MachineCeilings& best : table.ceilings) {
    out += text("\nThis machine at its best, {} threads: reads {:.1f} GB/s", best.threads, best.read_gb_s);
    if (best.clock_ghz > 0) out += text("; clock {:.2f} GHz", best.clock_ghz);
    if (!best.instruction.empty())
      out += text("; {} per cycle and core: {:.1f} MAC with weights of 8 bits, {:.1f} of 6, {:.1f} of 5 and less", best.instruction,
                  best.macs_per_cycle(8), best.macs_per_cycle(6), best.macs_per_cycle(5));
    out += ".\n";
  }
  return out;
}

std::string quoted(const std::string& field) {
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string as_csv(const BenchTable& table) {
  std::string out = "\"model\",\"size\",\"params\",\"backend\",\"threads\",\"test\",\"ts_mean\",\"ts_stddev\"";
  if (!table.ceilings.empty()) out += ",\"gb_s\",\"gb_s_best\",\"macs_per_cycle\",\"macs_per_cycle_bound\"";
  out += '\n';
  for (const BenchRow& row : table.rows) {
    const MeanDeviation ts = mean_deviation(row.samples);
    out += text("{},\"{}\",\"{}\",{},{},{},\"{:.6f}\",\"{:.6f}\"", quoted(table.model), table.bytes, table.parameters,
                quoted(table.backend), quoted(row.threads), quoted(row.test), ts.mean, ts.deviation);
    if (const auto& is = row.achieved)
      out += text(",\"{:.3f}\",\"{:.3f}\",\"{:.3f}\",\"{:.3f}\"", is->gb_s, is->gb_s_best, is->macs_per_cycle, is->macs_per_cycle_bound);
    out += '\n';
  }
  return out;
}

nlohmann::ordered_json number_or_text(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? nlohmann::ordered_json(number) : nlohmann::ordered_json(text);
}

std::string as_json(const BenchTable& table) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const BenchRow& row : table.rows) {
    const MeanDeviation ts = mean_deviation(row.samples);
    Json json{{"model", table.model},
              {"size", table.bytes},
              {"params", table.parameters},
              {"backend", table.backend},
              {"threads", number_or_text(row.threads)},
              {"test", row.test},
              {"ts_mean", ts.mean},
              {"ts_stddev", ts.deviation},
              {"samples_ts", row.samples}};
    if (const auto& is = row.achieved) {
      json["gb_s"] = is->gb_s;
      json["gb_s_best"] = is->gb_s_best;
      json["macs_per_cycle"] = is->macs_per_cycle;
      json["macs_per_cycle_bound"] = is->macs_per_cycle_bound;
      json["clock_ghz"] = is->clock_ghz;
    }
    out.push_back(std::move(json));
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string print_table(const BenchTable& table, BenchFormat format) {
  switch (format) {
    case BenchFormat::kMarkdown: return as_md(table);
    case BenchFormat::kCsv: return as_csv(table);
    case BenchFormat::kJson: return as_json(table);
  }
  return {};
}

}  // namespace minfer::programs
