// pagoda serve: the HTTP server.

#include <memory>

#include <fmt/core.h>

#include "commands.h"
#include "model_config.h"
#include "serve/gateway/api_keys.h"
#include "serving.h"

namespace pagoda::apps {
namespace {

base::Status check_exposure(const ServerSettings& settings) {
    if (!settings.api_keys.empty() && settings.allow_unauthenticated)
        return base::invalid(
            "allow_unauthenticated is set and so are API keys, with which every request needs "
            "one; leave one of the two out",
            "allow_unauthenticated");
    if (!settings.api_keys.empty() || settings.allow_unauthenticated ||
        is_loopback(settings.http.host))
        return {};
    return base::invalid(
        fmt::format("host {} can be reached from other machines and no API key is set; give "
                    "api_keys or api_key_file, or --allow-unauthenticated if all of them may "
                    "use this server",
                    settings.http.host),
        "host");
}

base::Result<http::Filter> make_filter(const ServerSettings& settings) {
    if (settings.api_keys.empty()) return gateway::address_filter();
    auto keys = gateway::ApiKeys::create(settings.api_keys);
    if (!keys) return std::move(keys).error();
    // Owned by the filter alone once this returns; a filter must be copyable.
    return gateway::key_filter(std::make_shared<gateway::ApiKeys>(std::move(keys).value()));
}

base::Result<http::Filter> make_admin_filter(const ServerSettings& settings) {
    if (settings.admin_api_key.empty()) return gateway::admin_filter(nullptr);
    auto key = gateway::ApiKeys::create({&settings.admin_api_key, 1});
    if (!key) return base::invalid("admin_api_key: " + key.error().message, "admin_api_key");
    for (const std::string& client : settings.api_keys) {
        if (key->find(client))
            return base::invalid(
                "admin_api_key is one of the clients' keys too; it must be another",
                "admin_api_key");
    }
    // As above.
    return gateway::admin_filter(std::make_shared<gateway::ApiKeys>(std::move(key).value()));
}

ExitCode serve(const Arguments& arguments) {
    const auto config = load_config(arguments);
    if (!config) return bad_usage(config.error());
    if (arguments.has("print-config")) {
        fmt::print("{}", config->to_yaml());
        return ExitCode::kSuccess;
    }
    const auto model = arguments.positional("MODEL");
    if (!model) return bad_usage(base::invalid("serve needs a MODEL; see pagoda serve --help"));
    const auto model_part = model_settings(*config);
    if (!model_part) return bad_usage(model_part.error());
    auto server_part = server_settings(*config);
    if (!server_part) return bad_usage(server_part.error());
    if (const auto safe = check_exposure(*server_part); !safe) return bad_usage(safe.error());
    auto filter = make_filter(*server_part);
    if (!filter) return bad_usage(filter.error());
    auto admin_filter = make_admin_filter(*server_part);
    if (!admin_filter) return bad_usage(admin_filter.error());

    Serving serving(std::move(server_part).value(), {.clients = std::move(filter).value(),
                                                     .admin = std::move(admin_filter).value()});
    if (const auto status = serving.listen(); !status) return fail(status.error());
    if (const auto status = serving.load(*model, *model_part); !status) return fail(status.error());
    serving.serve();
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec serve_command() {
    return {.name = "serve",
            .summary = "Serve a model over HTTP, in the shapes of OpenAI's API",
            .positionals = {{"MODEL", kModel.help, false}},
            .options = {kConfigOption, kPrintConfigOption},
            .config_uses = kUsesServer,
            .examples =
                "  pagoda serve model.gguf\n"
                "  pagoda serve model.gguf --port 9000 --max-num-seqs 16\n"
                "  pagoda serve model.gguf --host 0.0.0.0 --api-key-file keys.txt\n"
                "  PAGODA_THREADS=4 pagoda serve model.gguf --config pagoda.yaml\n"
                "  pagoda serve --config pagoda.yaml --print-config",
            .run = serve};
}

}  // namespace pagoda::apps
