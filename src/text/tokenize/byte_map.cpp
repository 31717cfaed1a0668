#include "text/tokenize/byte_map.h"

#include "base/utf8.h"

namespace pagoda::text {

ByteMap::ByteMap() {
    byte_of_.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool is_printable =
            (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
        char_of_[byte] = is_printable ? byte : next++;
        byte_of_[char_of_[byte]] = static_cast<std::int16_t>(byte);
    }
}

const ByteMap& ByteMap::instance() {
    static const ByteMap map;
    return map;
}

bool ByteMap::decode(std::string_view text, std::string& out) const {
    const std::size_t before = out.size();
    while (!text.empty()) {
        const auto lead = static_cast<unsigned char>(text.front());
        char32_t code = lead;
        std::size_t bytes = 1;
        if (lead >= 0x80) {
            const base::Utf8Char wide = base::decode_utf8(text);
            code = wide.valid ? wide.code : char32_t{kChars};
            bytes = wide.bytes;
        }
        if (code >= kChars || byte_of_[code] < 0) {
            out.resize(before);
            return false;
        }
        out.push_back(static_cast<char>(byte_of_[code]));
        text.remove_prefix(bytes);
    }
    return true;
}

}  // namespace pagoda::text
