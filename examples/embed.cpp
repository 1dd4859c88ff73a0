// minfer in a program of your own: asks a model, asks on, answers two questions at once, and stops an answer from another thread.
// Uses <minfer/runtime.hpp> alone. Usage: embed MODEL.gguf [QUESTION]
#include <atomic>
#include <iostream>
#include <thread>

#include <minfer/runtime.hpp>

namespace {

using namespace minfer::runtime;

int fail(const minfer::Error& error) {
  std::cerr << "error: " << error.text << '\n';
  return 1;
}

// A model without a chat template continues the text instead.
minfer::Result<Generation> ask(Session& session, const std::vector<Message>& messages, bool chat, const GenerateOptions& options) {
  return chat ? session.chat(messages, options) : session.generate(messages.back().content, options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: embed MODEL.gguf [QUESTION]\n";
    return 2;
  }
  LoadOptions load;
  load.model = argv[1];
  load.on_notice = [](std::string_view line) { std::cerr << line << '\n'; };
  const auto model = Model::load(load);
  if (!model.ok()) return fail(model.error());
  const bool chat = model->has_chat_template();

  // A conversation: the text appears as it is made; what the session has read already is not read again.
  auto session = Session::create(*model);
  if (!session.ok()) return fail(session.error());
  GenerateOptions options = model->generate_options();
  options.n_predict = 24;
  options.on_text = [](std::string_view piece) { std::cout << piece << std::flush; };
  std::vector<Message> messages = {{"user", argc > 2 ? argv[2] : "What is a mutex?"}};
  const auto first = ask(*session, messages, chat, options);
  if (!first.ok()) return fail(first.error());
  messages.push_back({"assistant", first->text});
  messages.push_back({"user", "Say it in one word."});
  std::cout << "\n---\n";
  const auto second = ask(*session, messages, chat, options);
  if (!second.ok()) return fail(second.error());
  std::cout << "\n---\n" << second->n_reused << " of " << second->n_prompt << " prompt tokens were there already\n";

  // Two sessions of one model at once: each says what it says alone.
  options.on_text = nullptr;
  std::string texts[2];
  const auto answer = [&](int i) {
    auto own = Session::create(*model);
    if (!own.ok()) return;
    if (const auto result = ask(*own, {{"user", "Count to five."}}, chat, options); result.ok()) texts[i] = result->text;
  };
  std::thread other(answer, 0);
  answer(1);
  other.join();
  std::cout << "two at once: " << (!texts[0].empty() && texts[0] == texts[1] ? "the same text" : "different texts") << '\n';

  // An answer without end, stopped from another thread.
  std::atomic<bool> stop = false;
  std::atomic<bool> begun = false;
  options.n_predict = -1;
  options.cancel = &stop;
  options.on_token = [&](int32_t) { begun = true; };
  std::thread watcher([&] {
    while (!begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop = true;
  });
  const auto stopped = ask(*session, {{"user", "Tell a long story."}}, chat, options);
  begun = true;  // whatever happened
  watcher.join();
  if (!stopped.ok()) return fail(stopped.error());
  std::cout << "stopped: " << (stopped->finish == FinishReason::kCancelled ? "yes" : "it had ended before") << '\n';
  return 0;
}
