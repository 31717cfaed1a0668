#pragma once
// Where the inner loops have the weights of a group from. Three sources with one interface:
//
//   PackedTile   decodes the tile; for a single row
//   KeptTile     decodes the tile and leaves what it decoded in a panel; for the first rows
//   PanelTile    reads that panel; for all other rows
//
// source.place(i) is the i-th group of the chunk of K that the source stands for. A chunk begins at
// a multiple of kFewRowsGroups, that is with a super-block.

#include "kernels/generic/decode_inl.h"

namespace pagoda::kernels {
namespace {

constexpr int kPanelGroups = 16;   // groups of a panel, at most: 16 KiB of codes in L1
constexpr int kFewRowsGroups = 8;  // of a panel that few rows use: what they store stays close
constexpr int kFewRows = 24;

// The properties of a weight type that the inner loops depend on.
template <Domain kDomainOf, Start kStartOf, bool kMinimumOf, bool kHalvesOf>
struct Shape {
    static constexpr Domain kDomain = kDomainOf;
    static constexpr Start kStart = kStartOf;
    static constexpr bool kMinimum = kMinimumOf;
    static constexpr bool kHalves = kHalvesOf;
};
template <class Vec, tensor::DType kDType>
using ShapeOf = Shape<TileFormat<Vec, kDType>::kDomain, TileFormat<Vec, kDType>::kStart,
                      TileFormat<Vec, kDType>::kMinimum, TileFormat<Vec, kDType>::kHalves>;

// One group of a tile, decoded.
struct PanelGroup {
    alignas(64) std::byte codes[8 * kStepBytes];
    alignas(64) float scale[kTileColumns];
    alignas(64) float minimum[kTileColumns];
    alignas(64) float half_scale[2][kTileColumns];
    alignas(64) float half_minimum[2][kTileColumns];
};
using Panel = PanelGroup[kPanelGroups];

template <class V, tensor::DType kDType>
struct PackedTile {
    using Vec = V;
    using Shape = ShapeOf<Vec, kDType>;
    using Place = GroupPlace;
    const std::byte* tile;
    std::int64_t first;  // group of the tile

    [[gnu::always_inline]] Place place(std::int64_t index) const {
        return place_of<TileFormat<Vec, kDType>>(tile, first + index);
    }
    template <int kStep>
    [[gnu::always_inline]] typename Vec::I codes(Place place, int vec) const {
        return decode_step<Vec, kDType, Codes::kAsDomain, Vec::kBias, kStep>(
            codes_of<TileFormat<Vec, kDType>>(place), vec);
    }
    [[gnu::always_inline]] typename Vec::F scale(Place place, int vec) const {
        return decode_scale<Vec, kDType>(place, vec);
    }
    [[gnu::always_inline]] typename Vec::F minimum(Place place, int vec) const {
        return decode_minimum<Vec, kDType>(place, vec);
    }
    [[gnu::always_inline]] typename Vec::F half_scale(Place place, int half, int vec) const {
        return decode_half_scale<Vec, kDType>(place, half, vec);
    }
    [[gnu::always_inline]] typename Vec::F half_minimum(Place place, int half, int vec) const {
        return decode_half_minimum<Vec, kDType>(place, half, vec);
    }
};

template <class V, tensor::DType kDType>
struct KeptTile {
    using Vec = V;
    using Shape = ShapeOf<Vec, kDType>;
    struct Place {
        GroupPlace packed;
        PanelGroup* kept;
    };
    PackedTile<Vec, kDType> tile;
    PanelGroup* panel;

    [[gnu::always_inline]] Place place(std::int64_t index) const {
        return {tile.place(index), panel + index};
    }
    template <int kStep>
    [[gnu::always_inline]] typename Vec::I codes(Place place, int vec) const {
        const typename Vec::I codes = tile.template codes<kStep>(place.packed, vec);
        Vec::store_bytes(place.kept->codes + kStep * kStepBytes + vec * Vec::kBytes, codes);
        return codes;
    }
    [[gnu::always_inline]] typename Vec::F scale(Place place, int vec) const {
        return keep(place.kept->scale, vec, tile.scale(place.packed, vec));
    }
    [[gnu::always_inline]] typename Vec::F minimum(Place place, int vec) const {
        return keep(place.kept->minimum, vec, tile.minimum(place.packed, vec));
    }
    [[gnu::always_inline]] typename Vec::F half_scale(Place place, int half, int vec) const {
        return keep(place.kept->half_scale[half], vec, tile.half_scale(place.packed, half, vec));
    }
    [[gnu::always_inline]] typename Vec::F half_minimum(Place place, int half, int vec) const {
        return keep(place.kept->half_minimum[half], vec,
                    tile.half_minimum(place.packed, half, vec));
    }

  private:
    [[gnu::always_inline]] static typename Vec::F keep(float* columns, int vec,
                                                       typename Vec::F value) {
        Vec::store(columns + vec * Vec::kLanes, value);
        return value;
    }
};

template <class V, class S>
struct PanelTile {
    using Vec = V;
    using Shape = S;
    using Place = const PanelGroup*;
    const PanelGroup* panel;

    [[gnu::always_inline]] Place place(std::int64_t index) const { return panel + index; }
    template <int kStep>
    [[gnu::always_inline]] typename Vec::I codes(Place place, int vec) const {
        return Vec::load_bytes(place->codes + kStep * kStepBytes + vec * Vec::kBytes);
    }
    [[gnu::always_inline]] typename Vec::F scale(Place place, int vec) const {
        return Vec::load(place->scale + vec * Vec::kLanes);
    }
    [[gnu::always_inline]] typename Vec::F minimum(Place place, int vec) const {
        return Vec::load(place->minimum + vec * Vec::kLanes);
    }
    [[gnu::always_inline]] typename Vec::F half_scale(Place place, int half, int vec) const {
        return Vec::load(place->half_scale[half] + vec * Vec::kLanes);
    }
    [[gnu::always_inline]] typename Vec::F half_minimum(Place place, int half, int vec) const {
        return Vec::load(place->half_minimum[half] + vec * Vec::kLanes);
    }
};

}  // namespace
}  // namespace pagoda::kernels
