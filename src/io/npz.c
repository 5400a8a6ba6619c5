/* Members of .npz files: a zip archive, read from its central directory. Stored members stay
 * where they are once their checksum is found right, deflated ones are inflated into room of
 * their own. */
#include "array_file.h"
#include "../checked.h"

#include <stdio.h>
#include <string.h>

#ifdef TARN_ZLIB
#include <zlib.h>
#endif

enum {
    END_BYTES = 22,     /* end of central directory */
    END64_BYTES = 56,   /* its 64-bit form */
    LOCATOR_BYTES = 20, /* which says where that is */
    ENTRY_BYTES = 46,   /* entry of the directory, without names */
    LOCAL_BYTES = 30,   /* header in front of a member, without names */
    PIECE = 1 << 25,    /* goes through zlib at a time: it counts in 32 bits */
    STORED = 0,
    DEFLATED = 8
};

typedef struct {
    char name[256];
    int method, flags;
    uint32_t crc;
    uint64_t packed, size, header; /* bytes in the file, bytes unpacked, where its header is */
} member;

typedef struct {
    uint64_t begin, end, count; /* the directory, and its entries */
} directory;

static uint64_t little(const unsigned char *data, int bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | data[bytes];
    return value;
}

/* Zip puts the end record last, behind it only a comment of at most 65535 bytes. */
static bool find_end(const tarn_region *file, size_t *at, tarn_complaint *complaint)
{
    for (size_t back = END_BYTES; back <= file->size && back <= END_BYTES + 65535; back++) {
        *at = file->size - back;
        if (memcmp(file->data + *at, "PK\5\6", 4) == 0)
            return true;
    }
    return tarn_complain_at(complaint, (int64_t)file->size,
                            "is a zip file without an end record: truncated?");
}

/* Where the 64-bit end record is; 0 if the archive has none. */
static size_t find_end64(const tarn_region *file, size_t end)
{
    if (end < LOCATOR_BYTES || memcmp(file->data + end - LOCATOR_BYTES, "PK\6\7", 4) != 0)
        return 0;
    uint64_t at = little(file->data + end - LOCATOR_BYTES + 8, 8);
    bool inside = file->size >= END64_BYTES && at <= file->size - END64_BYTES;
    return inside && memcmp(file->data + at, "PK\6\6", 4) == 0 ? (size_t)at : 0;
}

static bool find_directory(const tarn_region *file, directory *found, tarn_complaint *complaint)
{
    size_t end = 0;
    if (!find_end(file, &end, complaint))
        return false;
    size_t end64 = find_end64(file, end);
    const unsigned char *record = file->data + (end64 ? end64 : end);
    found->count = end64 ? little(record + 32, 8) : little(record + 10, 2);
    uint64_t size = end64 ? little(record + 40, 8) : little(record + 12, 4);
    found->begin = end64 ? little(record + 48, 8) : little(record + 16, 4);
    if (found->begin > end || size > end - found->begin)
        return tarn_complain_at(complaint, record - file->data,
                                "the directory of the zip file lies outside the file");
    found->end = found->begin + size;
    return true;
}

/* Sizes that 32 bits do not hold are in an extra field, in this order, each only if needed. */
static bool take_wide_sizes(const unsigned char *extra, size_t size, member *m)
{
    uint64_t *const wide[3] = {&m->size, &m->packed, &m->header};
    for (size_t at = 0; size - at >= 4;) {
        uint64_t id = little(extra + at, 2), length = little(extra + at + 2, 2);
        at += 4;
        if (length > size - at)
            return false;
        size_t next = at + length;
        for (int k = 0; k < 3 && id == 1; k++)
            if (*wide[k] == UINT32_MAX) {
                if (next - at < 8)
                    return false;
                *wide[k] = little(extra + at, 8);
                at += 8;
            }
        at = next;
    }
    return true;
}

/* Reads the entry at *at of the directory and moves on to the next. */
static bool take_entry(const tarn_region *file, const directory *d, uint64_t *at, member *m,
                       tarn_complaint *complaint)
{
    const unsigned char *entry = file->data + *at;
    int64_t place = (int64_t)*at;
    if (d->end - *at < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4) != 0)
        return tarn_complain_at(complaint, place, "the directory of the zip file is damaged");
    uint64_t name = little(entry + 28, 2), extra = little(entry + 30, 2);
    uint64_t rest = name + extra + little(entry + 32, 2);
    if (rest > d->end - *at - ENTRY_BYTES)
        return tarn_complain_at(complaint, place, "a name in the zip file's directory is too long");
    *m = (member){.flags = (int)little(entry + 8, 2),
                  .method = (int)little(entry + 10, 2),
                  .crc = (uint32_t)little(entry + 16, 4),
                  .packed = little(entry + 20, 4),
                  .size = little(entry + 24, 4),
                  .header = little(entry + 42, 4)};
    snprintf(m->name, sizeof m->name, "%.*s", (int)name, (const char *)entry + ENTRY_BYTES);
    *at += ENTRY_BYTES + rest;
    return take_wide_sizes(entry + ENTRY_BYTES + name, extra, m) ||
           tarn_complain_at(complaint, place, "the sizes of '%s' in the zip file are damaged",
                            m->name);
}

/* "x" names the member "x.npy". */
static bool is_named(const member *m, const char *name)
{
    size_t length = strlen(name);
    return strncmp(m->name, name, length) == 0 &&
           (m->name[length] == '\0' || strcmp(m->name + length, ".npy") == 0);
}

/* Takes the named member, or the only one. */
static bool find_member(const tarn_region *file, const char *name, member *found,
                        tarn_complaint *complaint)
{
    directory d = {0};
    member m;
    char names[160] = "";
    uint64_t matches = 0;
    if (!find_directory(file, &d, complaint))
        return false;
    uint64_t at = d.begin;
    for (uint64_t k = 0; k < d.count; k++) {
        if (!take_entry(file, &d, &at, &m, complaint))
            return false;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.100s", used ? ", " : "", m.name);
        if (!name || is_named(&m, name)) {
            *found = m;
            matches++;
        }
    }
    if (matches == 1)
        return true;
    return name ? tarn_complain(complaint, FAILED_WORK, "has %s member '%s'; it has: %s",
                                matches ? "more than one" : "no", name, names)
                : tarn_complain(complaint, FAILED_WORK,
                                "has %llu members, so say which, as in FILE.npz:NAME; it has: %s",
                                (unsigned long long)d.count, names);
}

/* The bytes of a member as they lie in the file. */
static bool locate(const tarn_region *file, const member *m, tarn_bytes *packed,
                   tarn_complaint *complaint)
{
    if (m->header > file->size || file->size - m->header < LOCAL_BYTES ||
        memcmp(file->data + m->header, "PK\3\4", 4) != 0)
        return tarn_complain_at(complaint, (int64_t)(m->header & INT64_MAX),
                                "no zip member begins here, though the directory says so");
    const unsigned char *header = file->data + m->header;
    uint64_t begin = m->header + LOCAL_BYTES + little(header + 26, 2) + little(header + 28, 2);
    if (begin > file->size || m->packed > file->size - begin)
        return tarn_complain_at(complaint, (int64_t)m->header,
                                "zip member '%s' takes %llu bytes, but the file ends before",
                                m->name, (unsigned long long)m->packed);
    *packed = (tarn_bytes){file->data + begin, (size_t)m->packed, (int64_t)begin};
    return true;
}

/* ---- Checksums ------------------------------------------------------------------------------ */

#ifdef TARN_ZLIB
static uint32_t add_to_crc(uint32_t crc, const unsigned char *data, size_t size)
{
    return (uint32_t)crc32(crc, data, (uInt)size);
}
#else
/* The CRC of zip: polynomial 0x04c11db7, bits from the lowest up. */
static uint32_t add_to_crc(uint32_t crc, const unsigned char *data, size_t size)
{
    uint32_t table[256];
    for (uint32_t k = 0; k < 256; k++) {
        table[k] = k;
        for (int bit = 0; bit < 8; bit++)
            table[k] = table[k] >> 1 ^ (table[k] & 1 ? 0xedb88320u : 0);
    }
    crc = ~crc;
    for (size_t k = 0; k < size; k++)
        crc = crc >> 8 ^ table[(crc ^ data[k]) & 0xff];
    return ~crc;
}
#endif

/* Compares bytes [begin,end) of a region with the member's checksum. A file larger than memory
 * should not fill it. */
static bool check_sum(const tarn_region *region, size_t begin, size_t end, const member *m,
                      int64_t place, tarn_complaint *complaint)
{
    uint32_t crc = 0;
    while (begin < end) {
        size_t size = end - begin < PIECE ? end - begin : PIECE;
        crc = add_to_crc(crc, region->data + begin, size);
        begin += size;
        if (size == PIECE)
            tarn_region_is_done(region, begin - size, begin);
    }
    return crc == m->crc ||
           tarn_complain_at(complaint, place, "zip member '%s' has the wrong checksum", m->name);
}

/* ---- Unpacking ------------------------------------------------------------------------------ */

#ifdef TARN_ZLIB
static uInt piece(size_t size)
{
    return (uInt)(size < PIECE ? size : PIECE);
}

/* Z_OK means that something has moved, so this ends. */
static int inflate_all(tarn_bytes packed, tarn_region *out)
{
    z_stream z = {0};
    size_t in_left = packed.size, out_left = out->size;
    int status = inflateInit2(&z, -MAX_WBITS); /* negative: no zlib header */
    z.next_in = (z_const Bytef *)(uintptr_t)packed.data;
    z.next_out = out->data;
    while (status == Z_OK) {
        z.avail_in = piece(in_left);
        z.avail_out = piece(out_left);
        size_t in_given = z.avail_in, out_given = z.avail_out;
        status = inflate(&z, Z_NO_FLUSH);
        in_left -= in_given - z.avail_in;
        out_left -= out_given - z.avail_out;
    }
    inflateEnd(&z);
    return status == Z_STREAM_END && out_left == 0 ? Z_OK : Z_DATA_ERROR;
}

/* Deflate packs at most 1032 to 1, so a size beyond that is a lie, told before room is made for
 * it. */
static bool unpack(tarn_bytes packed, const member *m, int64_t memory, tarn_region *out,
                   tarn_complaint *complaint)
{
    if (m->size / 1032 > packed.size)
        return tarn_complain_at(complaint, packed.at, "zip member '%s' cannot have %llu bytes",
                                m->name, (unsigned long long)m->size);
    if (!tarn_region_create((size_t)m->size, memory, out, complaint))
        return false;
    if (inflate_all(packed, out) != Z_OK)
        return tarn_complain_at(complaint, packed.at,
                                "zip member '%s' does not inflate to %llu bytes", m->name,
                                (unsigned long long)m->size);
    return check_sum(out, 0, out->size, m, packed.at, complaint);
}
#else
static bool unpack(tarn_bytes packed, const member *m, int64_t memory, tarn_region *out,
                   tarn_complaint *complaint)
{
    (void)memory, (void)out;
    return tarn_complain_at(complaint, packed.at,
                            "zip member '%s' is deflated, and this tarn was built without zlib",
                            m->name);
}
#endif

bool tarn_npz_decode(const char *name, int64_t memory, tarn_array *array, tarn_complaint *complaint)
{
    member m;
    tarn_bytes bytes;
    if (!find_member(&array->file, name, &m, complaint) ||
        !locate(&array->file, &m, &bytes, complaint))
        return false;
    if (m.flags & 1)
        return tarn_complain_at(complaint, (int64_t)m.header, "zip member '%s' is encrypted",
                                m.name);
    if (m.method == STORED && m.size == m.packed)
        return check_sum(&array->file, (size_t)bytes.at, (size_t)bytes.at + bytes.size, &m,
                         bytes.at, complaint) &&
               tarn_npy_decode(bytes, array, complaint);
    if (m.method != DEFLATED)
        return tarn_complain_at(complaint, (int64_t)m.header,
                                "zip member '%s' is packed by method %d; tarn reads stored and "
                                "deflated ones",
                                m.name, m.method);
    if (!unpack(bytes, &m, memory, &array->decoded, complaint))
        return false;
    bytes = (tarn_bytes){array->decoded.data, array->decoded.size, 0};
    return tarn_npy_decode(bytes, array, complaint);
}
