#pragma once
// A server for tests of the load: one connection, one request, the bytes that the test gives.
// Several connections at a time, a thread each.

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pagoda::loadgen::test {

class ScriptedServer final {
  public:
    // What a request (head and body) is answered with; then its connection closes. Any thread.
    using Answer = std::function<std::string(const std::string& request)>;
    explicit ScriptedServer(Answer answer);
    ~ScriptedServer();  // waits for its answers
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;

    [[nodiscard]] std::string url() const;

  private:
    void accept();
    void serve(int connection);

    const Answer answer_;
    int socket_;
    std::mutex mutex_;  // guards connections_
    std::vector<std::jthread> connections_;
    std::jthread acceptor_;
};

[[nodiscard]] std::string with_head(int status, std::string_view body);
// A whole stream of so many pieces, with usage.
[[nodiscard]] std::string streamed(int num_pieces);

}  // namespace pagoda::loadgen::test
