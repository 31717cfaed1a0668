#include "build_info.h"

#include "build_stamp.h"

namespace pagoda::apps {

BuildInfo build_info() {
    return {.version = PAGODA_STAMP_VERSION,
            .commit = PAGODA_STAMP_COMMIT,
            .compiler = PAGODA_STAMP_COMPILER,
            .build_type = PAGODA_STAMP_BUILD_TYPE};
}

base::Json version_json(std::string_view variant) {
    const BuildInfo info = build_info();
    base::Json json = base::Json::object();
    json.set("version", info.version);
    json.set("commit", info.commit);
    json.set("compiler", info.compiler);
    json.set("build_type", info.build_type);
    json.set("variant", variant);
    return json;
}

}  // namespace pagoda::apps
