#pragma once
// Texts that a user names: whole files and standard input, byte for byte. Free functions; errors
// name the file and what the system said.

#include <string>

#include "base/result.h"

namespace pagoda::apps {

[[nodiscard]] base::Result<std::string> read_text_file(const std::string& path);
[[nodiscard]] base::Result<std::string> read_standard_input();
// Standard input where it is a pipe or a file; nothing of terminals and devices, /dev/null above
// all.
[[nodiscard]] base::Result<std::string> read_piped_text();

}  // namespace pagoda::apps
