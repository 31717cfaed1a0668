#pragma once
// What this binary was built from. Constant.

#include <string_view>

#include "base/json.h"

namespace pagoda::apps {

struct BuildInfo {
    std::string_view version;
    std::string_view commit;  // "unknown" outside of a repository; "+" marks local changes
    std::string_view compiler;
    std::string_view build_type;
};
[[nodiscard]] BuildInfo build_info();

// {version, commit, compiler, build_type, variant}: the last as given.
[[nodiscard]] base::Json version_json(std::string_view variant);

}  // namespace pagoda::apps
