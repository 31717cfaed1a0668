#include "model_config.h"

#include <arpa/inet.h>

namespace pagoda::apps {

base::Result<Config> load_config(const Arguments& arguments) {
    return Config::load({.file = arguments.value("config"),
                         .environment = pagoda_environment(),
                         .flags = arguments.config});
}

base::Result<ModelSettings> local_model_settings(const Config& config, std::int64_t num_sequences) {
    auto settings = model_settings(config);
    if (!settings) return settings;
    if (config.is_default("max_num_seqs")) {
        settings->budget.max_num_seqs = num_sequences;
        settings->scheduler.max_num_seqs = num_sequences;
    }
    return settings;
}

bool is_loopback(const std::string& host) {
    if (host == "localhost") return true;
    in_addr v4{};
    if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    in6_addr v6{};
    if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

}  // namespace pagoda::apps
