#include "text/tokenize/token_model.h"

namespace pagoda::text {

base::Result<std::unique_ptr<TokenModel>> make_unigram(const ModelInput& /*input*/) {
    return base::Error{base::ErrorCode::kUnsupported, "unigram tokenizers are not offered", {}};
}

base::Result<std::unique_ptr<TokenModel>> make_wordpiece(const ModelInput& /*input*/) {
    return base::Error{base::ErrorCode::kUnsupported, "WordPiece tokenizers are not offered", {}};
}

}  // namespace pagoda::text
