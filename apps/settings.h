#pragma once
// The configuration cut into what each module is told. Plain data.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "config.h"
#include "kernels/args.h"
#include "kernels/ops/device_context.h"
#include "plan/memory_plan.h"
#include "sched/scheduler.h"
#include "serve/http/server.h"

namespace pagoda::apps {

struct ModelSettings {
    plan::MemoryBudget budget;         // all but what the machine says
    sched::SchedulerConfig scheduler;  // all but groups and length
    kernels::ActivationMode activation_mode = kernels::ActivationMode::kAuto;
    kernels::KvDType kv_dtype = kernels::KvDType::kBF16;
    std::optional<int> threads;                 // none: what affinity and quota allow
    const kernels::Kernels* kernels = nullptr;  // of PAGODA_ISA, or the best
    std::string packed_cache_folder;            // empty: packed weights are not kept
    std::string chat_template_file;             // empty: the model's
    bool uses_model_sampling = true;            // defaults from the model's generation settings
};
[[nodiscard]] base::Result<ModelSettings> model_settings(const Config& config);

struct ServerSettings {
    http::ServerOptions http;
    std::vector<std::string> model_names;  // empty: the file's name
    std::vector<std::string> api_keys;     // those of the key file included
    std::string admin_api_key;             // empty: none
    bool allow_unauthenticated = false;
    bool trust_request_chat_template = false;
    std::chrono::milliseconds shutdown_grace{0};
    base::Logger::Options log;
    std::string step_log;  // file; empty: none
};
// Reads the key file.
[[nodiscard]] base::Result<ServerSettings> server_settings(const Config& config);

}  // namespace pagoda::apps
