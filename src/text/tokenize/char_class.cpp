#include "text/tokenize/char_class.h"

#include <algorithm>
#include <map>

#include <utf8proc.h>

namespace pagoda::text {
namespace {

struct CodeRange {
    char32_t first, last;
};

// Unicode 15, Scripts.txt: Han.
constexpr CodeRange kHanRanges[] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2F800, 0x2FA1D}, {0x30000, 0x3134A},
    {0x31350, 0x323AF},
};

CharMask category_mask(char32_t code) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
        case UTF8PROC_CATEGORY_LU:
            return kUpper;
        case UTF8PROC_CATEGORY_LL:
            return kLower;
        case UTF8PROC_CATEGORY_LT:
            return kTitle;
        case UTF8PROC_CATEGORY_LM:
            return kModifier;
        case UTF8PROC_CATEGORY_LO:
            return kOtherLetter;
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
            return kMark;
        case UTF8PROC_CATEGORY_ND:
            return kDigit;
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO:
            return kOtherNumber;
        case UTF8PROC_CATEGORY_PC:
            return kPunct | kConnector;
        case UTF8PROC_CATEGORY_PD:
        case UTF8PROC_CATEGORY_PS:
        case UTF8PROC_CATEGORY_PE:
        case UTF8PROC_CATEGORY_PI:
        case UTF8PROC_CATEGORY_PF:
        case UTF8PROC_CATEGORY_PO:
            return kPunct;
        case UTF8PROC_CATEGORY_SM:
        case UTF8PROC_CATEGORY_SC:
        case UTF8PROC_CATEGORY_SK:
        case UTF8PROC_CATEGORY_SO:
            return kSymbol;
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CS:
            return kFormatOrControl;
        default:
            return 0;
    }
}

bool is_white_space(char32_t code) {
    return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

CharMask mask_of(char32_t code) {
    CharMask mask = category_mask(code);
    if (is_white_space(code)) mask |= kSpace;
    if (code == '\r' || code == '\n') mask |= kNewline;
    for (const CodeRange range : kHanRanges) {
        if (code >= range.first && code <= range.last) mask |= kHan;
    }
    return mask;
}

}  // namespace

CharTable::CharTable() {
    std::map<std::vector<CharMask>, std::uint16_t> known;
    std::vector<CharMask> block(kBlock);
    for (char32_t first = 0; first < kCodes; first += kBlock) {
        // Nothing but unassigned and private characters lies in these planes: look at one of each.
        const bool uniform = first >= 0x40000 && (first < 0xE0000 || first >= 0xE1000);
        if (uniform && first % 0x10000 != 0 && first % 0x10000 < 0xFF80) {
            block_of_[first >> kShift] = block_of_[(first >> kShift) - 1];
            continue;
        }
        for (char32_t i = 0; i < kBlock; ++i) block[i] = mask_of(first + i);
        const auto [entry, is_new] =
            known.try_emplace(block, static_cast<std::uint16_t>(blocks_.size() >> kShift));
        if (is_new) blocks_.insert(blocks_.end(), block.begin(), block.end());
        block_of_[first >> kShift] = entry->second;
    }
}

const CharTable& CharTable::instance() {
    static const CharTable table;
    return table;
}

}  // namespace pagoda::text
