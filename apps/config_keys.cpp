#include "config_keys.h"

#include <array>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/nearest_name.h"

namespace pagoda::apps {
namespace {

constexpr unsigned kModel = kUsesServer | kUsesModel;
constexpr unsigned kServer = kUsesServer;
constexpr double kMaxTokens = 1 << 24;
constexpr double kKibi = 1024, kMebi = kKibi * 1024, kGibi = kMebi * 1024, kTebi = kGibi * 1024;

constexpr std::string_view kNoSpeculation = "speculative decoding is not part of this version";
constexpr std::string_view kOneProcess = "a model runs in one process in this version";
constexpr std::string_view kNoTls = "put a TLS proxy in front";

constexpr auto kKeys = std::to_array<ConfigKey>({
    {.name = "host", .fallback = "127.0.0.1", .uses = kServer, .help = "address to listen on"},
    {.name = "port",
     .kind = KeyKind::kInt,
     .fallback = "8080",
     .uses = kServer,
     .help = "port to listen on; 0 picks one",
     .most = 65535},
    {.name = "uds", .uses = kServer, .help = "Unix socket", .offered = "|"},
    {.name = "allow_unauthenticated",
     .kind = KeyKind::kBool,
     .fallback = "false",
     .uses = kServer,
     .help = "serve a public address without API keys"},
    {.name = "api_keys",
     .kind = KeyKind::kList,
     .uses = kServer,
     .help = "keys of clients, separated by commas; every route but /health and /ready needs one",
     .is_secret = true},
    {.name = "api_key_file", .uses = kServer, .help = "file with a key a line"},
    {.name = "admin_api_key",
     .uses = kServer,
     .help = "key of the admin routes; without one they are for this machine alone",
     .is_secret = true},
    {.name = "tls_cert", .uses = kServer, .help = "certificate", .offered = "|", .reason = kNoTls},
    {.name = "tls_key", .uses = kServer, .help = "private key", .offered = "|", .reason = kNoTls},
    {.name = "served_model_name",
     .kind = KeyKind::kList,
     .uses = kServer,
     .help = "names in the API, separated by commas (default: the file's name)"},
    {.name = "max_body",
     .kind = KeyKind::kBytes,
     .fallback = "32MiB",
     .uses = kServer,
     .help = "largest request body",
     .least = kKibi,
     .most = 4 * kGibi},
    {.name = "max_header",
     .kind = KeyKind::kBytes,
     .fallback = "64KiB",
     .uses = kServer,
     .help = "largest request header",
     .least = 256,
     .most = 16 * kMebi},
    {.name = "header_timeout",
     .kind = KeyKind::kDuration,
     .fallback = "20s",
     .uses = kServer,
     .help = "time to send a request's header"},
    {.name = "idle_timeout",
     .kind = KeyKind::kDuration,
     .fallback = "75s",
     .uses = kServer,
     .help = "time a connection may be silent"},
    {.name = "request_timeout",
     .kind = KeyKind::kDuration,
     .fallback = "none",
     .uses = kServer,
     .help = "time of a whole request",
     .offered = "none"},
    {.name = "heartbeat",
     .kind = KeyKind::kDuration,
     .fallback = "10s",
     .uses = kServer,
     .help = "silence of a stream before a comment is sent"},
    {.name = "http_threads",
     .kind = KeyKind::kInt,
     .fallback = "2",
     .uses = kServer,
     .help = "threads for connections",
     .least = 1,
     .most = 64},
    {.name = "shutdown_grace",
     .kind = KeyKind::kDuration,
     .fallback = "30s",
     .uses = kServer,
     .help = "time for running requests after the signal to stop"},
    {.name = "log_format",
     .kind = KeyKind::kChoice,
     .fallback = "text",
     .uses = kServer,
     .help = "form of the log",
     .choices = base::kLogFormatNames},
    {.name = "log_level",
     .kind = KeyKind::kChoice,
     .fallback = "info",
     .uses = kServer,
     .help = "least level that is logged",
     .choices = base::kLogLevelNames},
    {.name = "step_log",
     .uses = kServer,
     .help = "file that gets every plan of the scheduler, for pagoda replay; it holds prompts as "
             "token ids (default: none)"},
    {.name = "trust_request_chat_template",
     .kind = KeyKind::kBool,
     .fallback = "false",
     .uses = kServer,
     .help = "run chat templates that requests bring"},
    {.name = "chat_template",
     .uses = kServer | kUsesAnswers,
     .help = "file with a Jinja template in place of the model's"},
    {.name = "generation_config",
     .kind = KeyKind::kChoice,
     .fallback = "auto",
     .uses = kServer | kUsesAnswers,
     .help = "sampling defaults: auto takes the model's, none OpenAI's",
     .choices = "auto|none"},
    {.name = "max_model_len",
     .kind = KeyKind::kInt,
     .fallback = "auto",
     .uses = kModel,
     .help = "tokens of one sequence",
     .least = 1,
     .most = kMaxTokens},
    {.name = "max_num_seqs",
     .kind = KeyKind::kInt,
     .fallback = "64",
     .uses = kModel,
     .help = "sequences in one step; run and perplexity plan for one unless told",
     .least = 1,
     .most = 4096},
    {.name = "max_num_batched_tokens",
     .kind = KeyKind::kInt,
     .fallback = "512",
     .uses = kModel,
     .help = "tokens in one step",
     .least = 1,
     .most = 65536},
    {.name = "target_itl_ms",
     .kind = KeyKind::kInt,
     .fallback = "200",
     .uses = kModel,
     .help = "prompts are cut so that running streams wait no longer for a step (or four steps of "
             "decoding alone, if that is more); 0: no limit, the default of bench engine",
     .least = 0,
     .most = 60000},
    {.name = "max_queue",
     .kind = KeyKind::kInt,
     .fallback = "1024",
     .uses = kServer,
     .help = "waiting sequences, then 503",
     .least = 1,
     .most = 1e6},
    {.name = "memory_utilization",
     .kind = KeyKind::kNumber,
     .fallback = "0.9",
     .uses = kModel,
     .help = "share of the memory limit for everything",
     .least = 0.01,
     .most = 1,
     .alias = "gpu_memory_utilization"},
    {.name = "kv_cache_memory",
     .kind = KeyKind::kBytes,
     .fallback = "auto",
     .uses = kModel,
     .help = "memory of the KV cache, as 512MiB",
     .least = kMebi,
     .most = kTebi},
    {.name = "packed_cache_dir",
     .uses = kModel,
     .help = "folder that keeps packed weights for the next start (default: none)"},
    {.name = "block_size",
     .kind = KeyKind::kInt,
     .fallback = "32",
     .uses = kModel,
     .help = "tokens of a KV block",
     .least = 1,
     .most = 4096,
     .offered = "32",
     .reason = "the attention kernels are built for blocks of 32 tokens"},
    {.name = "kv_cache_dtype",
     .kind = KeyKind::kChoice,
     .fallback = "auto",
     .uses = kModel,
     .help = "auto is bf16, and f32 when activation_dtype is f32; int8 has a scale per token and "
             "KV head",
     .choices = "auto|f32|bf16|fp8_e4m3|int8|int4",
     .offered = "auto|f32|bf16|int8"},
    {.name = "enable_prefix_caching",
     .kind = KeyKind::kBool,
     .fallback = "true",
     .uses = kModel,
     .help = "prompts that begin as earlier ones did use their KV blocks"},
    {.name = "scheduling_policy",
     .kind = KeyKind::kChoice,
     .fallback = "fair",
     .uses = kModel,
     .help = "fcfs, priority or fair (by client)",
     .choices = "fcfs|priority|fair|deadline",
     .offered = "fcfs|priority|fair"},
    {.name = "preemption_mode",
     .kind = KeyKind::kChoice,
     .fallback = "recompute",
     .uses = kModel,
     .help = "how a preempted sequence comes back",
     .choices = "recompute|swap",
     .offered = "recompute"},
    {.name = "num_speculative_tokens",
     .kind = KeyKind::kInt,
     .fallback = "0",
     .uses = kModel,
     .help = "tokens that are guessed ahead",
     .most = 64,
     .offered = "0",
     .reason = kNoSpeculation},
    {.name = "speculative_method",
     .kind = KeyKind::kChoice,
     .fallback = "none",
     .uses = kModel,
     .help = "who guesses",
     .choices = "none|ngram|draft",
     .offered = "none",
     .reason = kNoSpeculation},
    {.name = "draft_model",
     .uses = kModel,
     .help = "model that guesses",
     .offered = "|",
     .reason = kNoSpeculation},
    {.name = "activation_dtype",
     .kind = KeyKind::kChoice,
     .fallback = "auto",
     .uses = kModel,
     .help =
         "auto rounds activations to int8 where weights are block-quantised; f32 rounds nothing",
     .choices = "auto|f32"},
    {.name = "threads",
     .kind = KeyKind::kInt,
     .fallback = "auto",
     .uses = kModel,
     .help = "compute threads; auto: the physical cores that affinity and quota allow",
     .least = 1,
     .most = 1024},
    {.name = "pooling",
     .kind = KeyKind::kChoice,
     .fallback = "none",
     .uses = kServer,
     .help = "embeddings of a decoder",
     .choices = "none|mean|last|cls",
     .offered = "none"},
    {.name = "tensor_parallel_size",
     .kind = KeyKind::kInt,
     .fallback = "1",
     .uses = kModel,
     .help = "ranks that share a layer",
     .least = 1,
     .most = 1024,
     .offered = "1",
     .reason = kOneProcess},
    {.name = "pipeline_parallel_size",
     .kind = KeyKind::kInt,
     .fallback = "1",
     .uses = kModel,
     .help = "ranks that share the layers",
     .least = 1,
     .most = 1024,
     .offered = "1",
     .reason = kOneProcess},
    {.name = "enable_expert_parallel",
     .kind = KeyKind::kBool,
     .fallback = "false",
     .uses = kModel,
     .help = "experts on several ranks",
     .offered = "false",
     .reason = kOneProcess},
});

std::string underscores(std::string_view name) {
    std::string result(name);
    for (char& c : result) {
        if (c == '-') c = '_';
    }
    return result;
}

}  // namespace

std::span<const ConfigKey> config_keys() {
    return kKeys;
}

const ConfigKey* find_config_key(std::string_view name) {
    const std::string wanted = underscores(name);
    for (const ConfigKey& key : kKeys) {
        if (key.name == wanted || (!key.alias.empty() && key.alias == wanted)) return &key;
    }
    return nullptr;
}

std::string_view nearest_config_key(std::string_view name) {
    std::vector<std::string_view> names;
    names.reserve(kKeys.size());
    for (const ConfigKey& key : kKeys) names.push_back(key.name);
    return base::nearest_name(name, names);
}

std::string_view kind_name(const ConfigKey& key) {
    switch (key.kind) {
        case KeyKind::kText:
            return "TEXT";
        case KeyKind::kList:
            return "A,B";
        case KeyKind::kBool:
            return "BOOL";
        case KeyKind::kInt:
            return "N";
        case KeyKind::kNumber:
            return "X";
        case KeyKind::kBytes:
            return "SIZE";
        case KeyKind::kDuration:
            return "TIME";
        case KeyKind::kChoice:
            return key.offered.empty() ? key.choices : key.offered;
    }
    return "";
}

bool has_choice(const ConfigKey& key) {
    if (key.offered.empty()) return true;
    const std::size_t bar = key.offered.find('|');
    return bar != std::string_view::npos && bar > 0 && bar + 1 < key.offered.size();
}

bool contains_word(std::string_view set, std::string_view word) {
    while (true) {
        const std::size_t bar = set.find('|');
        if (set.substr(0, bar) == word) return true;
        if (bar == std::string_view::npos) return false;
        set.remove_prefix(bar + 1);
    }
}

}  // namespace pagoda::apps
