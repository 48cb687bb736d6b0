/* What an entry of a ledger needs of the machine: SHA-256, the clock, and whether a file is still the one that it was. */
#ifndef DPESTIM_ENTRY_H
#define DPESTIM_ENTRY_H

#include <stdint.h>
#include <string.h>
#include <time.h>

static inline uint32_t dpestim_rotated(uint32_t word, int by) { return word >> by | word << (32 - by); }

static void dpestim_sha256_block(uint32_t state[8], const uint8_t *block)
{
    static const uint32_t K[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], a[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8
               | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (dpestim_rotated(x, 7) ^ dpestim_rotated(x, 18) ^ x >> 3)
               + (dpestim_rotated(y, 17) ^ dpestim_rotated(y, 19) ^ y >> 10);
    }
    memcpy(a, state, sizeof a);
    for (int i = 0; i < 64; i++) {
        uint32_t e = a[4], b = a[0];
        uint32_t one = a[7] + (dpestim_rotated(e, 6) ^ dpestim_rotated(e, 11) ^ dpestim_rotated(e, 25))
                       + ((e & a[5]) ^ (~e & a[6])) + K[i] + w[i];
        uint32_t two = (dpestim_rotated(b, 2) ^ dpestim_rotated(b, 13) ^ dpestim_rotated(b, 22))
                       + ((b & a[1]) ^ (b & a[2]) ^ (a[1] & a[2]));
        a[7] = a[6], a[6] = a[5], a[5] = e, a[4] = a[3] + one;
        a[3] = a[2], a[2] = a[1], a[1] = b, a[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += a[i];
}

/* Write the 64 hexadecimal digits of a text's SHA-256 (FIPS 180-4). */
static void dpestim_sha256(const char *text, size_t n, char *digits)
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t last[128] = {0};
    size_t done = 0, rest = n % 64, padded = rest < 56 ? 64 : 128;
    for (; done + 64 <= n; done += 64)
        dpestim_sha256_block(state, (const uint8_t *)text + done);
    memcpy(last, text + done, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[padded - 1 - i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    dpestim_sha256_block(state, last);
    if (padded == 128)
        dpestim_sha256_block(state, last + 64);
    for (int i = 0; i < 64; i++)
        digits[i] = "0123456789abcdef"[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
}

static char *dpestim_digits(char *to, int n, uint64_t number)
{
    for (int i = n; i--; number /= 10)
        to[i] = (char)('0' + number % 10);
    return to + n;
}

/* Write a number; returns where it ends. */
static char *dpestim_decimal(char *to, uint64_t number)
{
    int n = 1;
    for (uint64_t rest = number; rest >= 10; rest /= 10)
        n++;
    return dpestim_digits(to, n, number);
}

/* Write a time in UTC as Python's datetime does, 32 characters; returns whether it is one of this millennium. */
static int dpestim_time(int64_t since, int64_t nanoseconds, char *text)
{
    if (since < 946684800 || since >= 32503680000)
        return 0;
    /* days since the first of March of the year 2000, in years that end with February, cycles of 4, 100, 400 years */
    uint64_t seconds = (uint64_t)since - 946684800, second = seconds % 86400, days = seconds / 86400 + 146097 - 60;
    uint64_t era = days / 146097, day = days % 146097;
    uint64_t years = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint64_t of_year = day - (365 * years + years / 4 - years / 100), month = (5 * of_year + 2) / 153;
    char *to = dpestim_digits(text, 4, 1600 + 400 * era + years + (month >= 10));
    *to++ = '-', to = dpestim_digits(to, 2, month < 10 ? month + 3 : month - 9);
    *to++ = '-', to = dpestim_digits(to, 2, of_year - (153 * month + 2) / 5 + 1);
    *to++ = 'T', to = dpestim_digits(to, 2, second / 3600);
    *to++ = ':', to = dpestim_digits(to, 2, second / 60 % 60);
    *to++ = ':', to = dpestim_digits(to, 2, second % 60);
    *to++ = '.', to = dpestim_digits(to, 6, (uint64_t)nanoseconds / 1000);
    memcpy(to, "+00:00", 6);
    return 1;
}

#ifdef _WIN32
/* There a file has no number that these calls show: whoever asks goes the way that needs none of this. */
static int dpestim_process(void) { return 0; }
static int dpestim_facts(const char *path, uint64_t facts[3]) { (void)path, (void)facts; return 0; }
static int dpestim_is_there(const char *path) { (void)path; return 1; }
static int dpestim_clock(int64_t *seconds, int64_t *nanoseconds) { (void)seconds, (void)nanoseconds; return 0; }
#else
#include <sys/stat.h>
#include <unistd.h>

static int dpestim_process(void) { return (int)getpid(); }

/* Find a file's device, number and size; returns whether there is one. */
static int dpestim_facts(const char *path, uint64_t facts[3])
{
    struct stat found;
    if (stat(path, &found))
        return 0;
    facts[0] = (uint64_t)found.st_dev, facts[1] = (uint64_t)found.st_ino, facts[2] = (uint64_t)found.st_size;
    return 1;
}

static int dpestim_is_there(const char *path) { return access(path, F_OK) == 0; }

static int dpestim_clock(int64_t *seconds, int64_t *nanoseconds)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return 0;
    *seconds = now.tv_sec, *nanoseconds = now.tv_nsec;
    return 1;
}
#endif
#endif
