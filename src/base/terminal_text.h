#pragma once
// Text from outside made fit for a terminal or a log: nothing in it can move the cursor, forge a
// line or show in another order than it is read. For the edge where bytes leave the process; what
// only passes through stays as it is. Free functions, thread-safe.

#include <string>
#include <string_view>

namespace pagoda::base {

// A character that steers a terminal or reorders what it shows: control characters (C0, DEL, C1),
// the line and paragraph separators, and marks, embeddings, overrides and isolates of the
// bidirectional algorithm (Unicode standard annex 9, 2).
[[nodiscard]] bool is_terminal_control(char32_t code);

// One line of valid UTF-8. A line end is written as \n, another control character and every byte
// that is no UTF-8 as \xHH, what lies above ASCII as \uHHHH.
[[nodiscard]] std::string terminal_line(std::string_view text);
// The same, with line ends and tabs as they are.
[[nodiscard]] std::string terminal_text(std::string_view text);
// JSON as Json::dump() writes it. What it leaves as it is in strings becomes \uHHHH, which is the
// same to whoever parses it.
[[nodiscard]] std::string terminal_json(std::string_view json);

}  // namespace pagoda::base
