// Session::export_kv and import_kv on the reference device, whose rows are f32.
#include <catch2/catch.hpp>

#include "unit/engine/session_fixture.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

std::vector<std::vector<std::byte>> export_all(const Session& session, SeqId seq, uint32_t n_layers) {
  std::vector<std::vector<std::byte>> layers(n_layers, std::vector<std::byte>(session.kv_layer_bytes(session.cursor(seq))));
  for (uint32_t layer = 0; layer < n_layers; ++layer) REQUIRE(session.export_kv(seq, layer, layers[layer]).ok());
  return layers;
}

auto reader(const std::vector<std::vector<std::byte>>& layers) {
  return [&layers](uint32_t layer, std::span<std::byte> bytes) -> Status {
    if (layers[layer].size() != bytes.size()) return internal_error("layer {}: {} bytes wanted", layer, bytes.size());
    std::copy(layers[layer].begin(), layers[layer].end(), bytes.begin());
    return {};
  };
}

}  // namespace

TEST_CASE("engine/session: exported KV goes on in another session to the bit, wherever its blocks lie") {
  ToyModel toy;
  const uint32_t n_layers = toy.model->info().n_layers;
  REQUIRE(n_layers == 2);
  const auto tokens = toy_tokens(150), more = toy_tokens(70, 7);
  const auto first = make_session(toy, toy_cparams(512, 2)), second = make_session(toy, toy_cparams(512, 2));
  step(*first, tokens, 0);
  const auto layers = export_all(*first, 0, n_layers);
  CHECK(layers[0] != layers[1]);

  step(*second, toy_tokens(70, 3), 0);  // sequence 0 takes the first blocks, sequence 1 those behind them
  REQUIRE(second->import_kv(1, 150, reader(layers)).ok());
  CHECK(second->cursor(1) == 150);
  CHECK(second->blocks().rows_of(1, 150)[0].block != first->blocks().rows_of(0, 150)[0].block);
  CHECK(export_all(*second, 1, n_layers) == layers);
  const Rows expected = step(*first, more, 70);
  CHECK(same_bits(step(*second, more, 70, 1), expected));
}

TEST_CASE("engine/session: an import that fails leaves the sequence empty and its blocks free") {
  ToyModel toy;
  const auto session = make_session(toy);
  step(*session, toy_tokens(100), 0);
  const auto layers = export_all(*session, 0, 2);
  std::vector<std::byte> short_by_one(session->kv_layer_bytes(100) - 1);
  CHECK_FALSE(session->export_kv(0, 0, short_by_one).ok());

  const auto other = make_session(toy);
  const uint32_t n_free = other->blocks().n_free();
  toy.device().fail_kv_import = 1;  // the second layer
  const Status failed = other->import_kv(0, 100, reader(layers));
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().text.find("layer 1") != std::string::npos);
  CHECK(other->cursor(0) == 0);
  CHECK(other->blocks().n_free() == n_free);

  const Status unreadable = other->import_kv(0, 100, [](uint32_t, std::span<std::byte>) -> Status { return io_error("no bytes"); });
  REQUIRE_FALSE(unreadable.ok());
  CHECK(unreadable.error().text == "no bytes");
  CHECK(other->blocks().n_free() == n_free);
  CHECK_FALSE(other->import_kv(0, 100000, reader(layers)).ok());
  REQUIRE(other->import_kv(0, 100, reader(layers)).ok());
  const Status twice = other->import_kv(0, 100, reader(layers));
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().text == "sequence 0 is not empty, it holds 100 positions");
}
