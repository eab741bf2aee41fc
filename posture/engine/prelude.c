/* Arithmetic on LANES doubles side by side: the type real, elementary functions, sines and cosines. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#if LANES == 1
typedef double real;
#define LANE(value, lane) (value)
#define real_of(x) ((double)(x))
#define WIDE 4
#else
typedef double real __attribute__((vector_size(8 * LANES)));
#define LANE(value, lane) ((value)[lane])
#define real_of(x) ((x) - (real){0})
#define WIDE LANES
#endif
typedef double wide __attribute__((vector_size(8 * WIDE)));
typedef int64_t whole __attribute__((vector_size(8 * WIDE)));

#define EACH(name, formula)                                                        \
  static inline real name(real a) {                                                \
    real r;                                                                        \
    for (int lane = 0; lane < LANES; lane++) {                                     \
      const double x = LANE(a, lane);                                              \
      LANE(r, lane) = (formula);                                                   \
    }                                                                              \
    return r;                                                                      \
  }
#define BOTH(name, formula)                                                        \
  static inline real name(real a, real b) {                                        \
    real r;                                                                        \
    for (int lane = 0; lane < LANES; lane++) {                                     \
      const double x = LANE(a, lane), y = LANE(b, lane);                           \
      LANE(r, lane) = (formula);                                                   \
    }                                                                              \
    return r;                                                                      \
  }
EACH(real_sqrt, sqrt(x))
EACH(real_abs, fabs(x))
EACH(real_tan, tan(x))
EACH(real_exp, exp(x))
EACH(real_log, log(x))
EACH(real_tanh, tanh(x))
EACH(real_atan, atan(x))
EACH(real_asin, asin(x))
EACH(real_acos, acos(x))
EACH(real_sign, (double)((x > 0) - (x < 0)))
BOTH(real_min, fmin(x, y))
BOTH(real_max, fmax(x, y))
BOTH(real_pow, pow(x, y))
BOTH(real_atan2, atan2(x, y))
BOTH(real_less, (double)(x < y))
BOTH(real_less_equal, (double)(x <= y))
BOTH(real_equal, (double)(x == y))
BOTH(real_if, x != 0 ? y : 0.0)

/* Sine and cosine: the angle less the nearest multiple of a quarter turn (whose first part has 33 bits, so that the
 * product is exact up to a million quarter turns), then the Taylor-like minimax polynomials of degree 13 and 14
 * on ±45° whose coefficients are printed with Sun's fdlibm. Within 1 unit in the last place of 1; angles past all
 * sense give large values, with which a run soon stops being finite. */
static inline void wide_sines(wide x, wide *sine, wide *cosine) {
  const double shifter = 6755399441055744.0;                /* 1.5 · 2^52: adding it rounds to a whole number */
  const wide shifted = x * 0.63661977236758134308 + shifter, n = shifted - shifter;
  const whole quarter = (whole)shifted;
  const wide r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
  const wide z = r * r;
  const wide s = r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 +
      z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 +
      z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
  const wide tail = z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 +
      z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 +
      z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  const wide c = (1.0 - 0.5 * z) + tail;
  const whole swap = -(quarter & 1), sine_sign = (quarter & 2) << 62, cosine_sign = ((quarter + 1) & 2) << 62;
  *sine = (wide)((((whole)s & ~swap) | ((whole)c & swap)) ^ sine_sign);
  *cosine = (wide)((((whole)c & ~swap) | ((whole)s & swap)) ^ cosine_sign);
}

/* Of count reals; one run packs WIDE of them into a vector. */
static inline void sines(const real *x, real *s, real *c, int64_t count) {
#if LANES == 1
  int64_t i = 0;
  for (; i + WIDE <= count; i += WIDE) {
    wide angle, sine, cosine;
    memcpy(&angle, x + i, sizeof angle);
    wide_sines(angle, &sine, &cosine);
    memcpy(s + i, &sine, sizeof sine);
    memcpy(c + i, &cosine, sizeof cosine);
  }
  if (count % WIDE) {
    wide angle = {0}, sine, cosine;
    for (int64_t j = i; j < count; j++) angle[j - i] = x[j];
    wide_sines(angle, &sine, &cosine);
    for (int64_t j = i; j < count; j++) { s[j] = sine[j - i]; c[j] = cosine[j - i]; }
  }
#else
  for (int64_t i = 0; i < count; i++) wide_sines(x[i], s + i, c + i);
#endif
}

static inline real real_sin(real x) { real s, c; sines(&x, &s, &c, 1); return s; }
static inline real real_cos(real x) { real s, c; sines(&x, &s, &c, 1); return c; }
