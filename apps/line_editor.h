#pragma once
// LineEditor: one line after the other from the terminal, with history kept in a file. The only
// place that knows the editing library. One thread.

#include <memory>
#include <optional>
#include <string>

namespace pagoda::apps {

class LineEditor {
  public:
    // history_file: empty for none; its folder is made when needed.
    LineEditor(std::string prompt, std::string history_file);
    // Saves the history.
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    // The next line without its end; nothing when the user leaves (Ctrl-D, or Ctrl-C twice on an
    // empty line). A line that ends with a backslash goes on in the next one.
    [[nodiscard]] std::optional<std::string> read();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::apps
