#include "settings.h"

#include <memory>

#include "kernel_choice.h"
#include "kv/store/kv_store.h"
#include "serve/gateway/api_keys.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

base::Status check_transport(const Config& config) {
    for (const std::string_view key : {"header_timeout", "idle_timeout", "heartbeat"}) {
        if (config.duration(key).count() == 0)
            return base::invalid(std::string(key) + " must be above 0");
    }
    return {};
}

}  // namespace

base::Result<ModelSettings> model_settings(const Config& config) {
    ModelSettings settings;
    plan::MemoryBudget& budget = settings.budget;
    budget.utilization = config.number("memory_utilization");
    if (!config.is_word("kv_cache_memory")) budget.kv_cache_bytes = config.bytes("kv_cache_memory");
    if (!config.is_word("max_model_len")) budget.max_model_len = config.integer("max_model_len");
    budget.max_num_seqs = config.integer("max_num_seqs");
    budget.max_num_batched_tokens = config.integer("max_num_batched_tokens");
    settings.scheduler.max_num_seqs = budget.max_num_seqs;
    settings.scheduler.max_num_batched_tokens = budget.max_num_batched_tokens;
    settings.scheduler.target_itl = std::chrono::milliseconds(config.integer("target_itl_ms"));
    settings.scheduler.max_queue = config.integer("max_queue");
    const auto policy = sched::parse_policy(config.text("scheduling_policy"));
    if (!policy) return policy.error();
    settings.scheduler.policy = *policy;
    // The key of the hashes is new in each process: nobody can prepare collisions.
    if (config.boolean("enable_prefix_caching"))
        settings.scheduler.prefix_hasher =
            std::make_shared<const kv::PrefixHasher>(base::HashKey::random());
    if (config.text("activation_dtype") == "f32")
        settings.activation_mode = kernels::ActivationMode::kF32;
    const auto kv_dtype =
        kv::parse_kv_dtype(config.text("kv_cache_dtype"), settings.activation_mode);
    if (!kv_dtype) return kv_dtype.error();
    settings.kv_dtype = *kv_dtype;
    if (!config.is_word("threads")) settings.threads = static_cast<int>(config.integer("threads"));
    const auto chosen = chosen_kernels();
    if (!chosen) return chosen.error();
    settings.kernels = *chosen;
    settings.packed_cache_folder = config.text("packed_cache_dir");
    settings.chat_template_file = config.text("chat_template");
    settings.uses_model_sampling = config.text("generation_config") != "none";
    return settings;
}

base::Result<ServerSettings> server_settings(const Config& config) {
    if (const auto valid = check_transport(config); !valid) return valid.error();
    ServerSettings settings;
    settings.http = {.host = config.text("host"),
                     .port = static_cast<std::uint16_t>(config.integer("port")),
                     .threads = static_cast<int>(config.integer("http_threads")),
                     .max_body_bytes = config.bytes("max_body"),
                     .max_header_bytes = static_cast<std::uint32_t>(config.bytes("max_header")),
                     .header_timeout = config.duration("header_timeout"),
                     .idle_timeout = config.duration("idle_timeout"),
                     .heartbeat = config.duration("heartbeat")};
    settings.model_names = config.list("served_model_name");
    settings.api_keys = config.list("api_keys");
    if (const std::string file = config.text("api_key_file"); !file.empty()) {
        const auto text = read_text_file(file);
        if (!text) return text.error();
        auto keys = gateway::parse_key_file(*text, file);
        if (!keys) return std::move(keys).error();
        settings.api_keys.insert(settings.api_keys.end(), keys->begin(), keys->end());
    }
    settings.admin_api_key = config.text("admin_api_key");
    settings.allow_unauthenticated = config.boolean("allow_unauthenticated");
    settings.trust_request_chat_template = config.boolean("trust_request_chat_template");
    settings.shutdown_grace = config.duration("shutdown_grace");
    settings.step_log = config.text("step_log");
    // The table of keys has these names and no others.
    settings.log = {.level = base::parse_log_level(config.text("log_level")).value(),
                    .format = base::parse_log_format(config.text("log_format")).value()};
    return settings;
}

}  // namespace pagoda::apps
