/* Inverse dynamics of many frames, LANES at a time. The generated inverse() works on the type real. */

EXPORT void posture_frames(const double *parameters, int64_t frames, const double *q, const double *v, const double *a,
                           double *out) {
  real p[PARAMETERS + 1], k[CONSTANTS];
  for (int i = 0; i < PARAMETERS; i++) p[i] = real_of(parameters[i]);
  prepare(p, k);
  const int place[ANGLES + 1] = ANGLE_PLACES;
  for (int64_t frame = 0; frame < frames; frame += LANES) {
    real x[NQ], s[ANGLES + 1], c[ANGLES + 1], angle[ANGLES + 1], rate[NV], bend[NV], force[NV];
    for (int lane = 0; lane < LANES; lane++) {
      const int64_t at = frame + lane < frames ? frame + lane : frames - 1;
      for (int i = 0; i < NQ; i++) LANE(x[i], lane) = q[at * NQ + i];
      for (int i = 0; i < NV; i++) LANE(rate[i], lane) = v[at * NV + i];
      for (int i = 0; i < NV; i++) LANE(bend[i], lane) = a[at * NV + i];
    }
    for (int i = 0; i < ANGLES; i++) angle[i] = x[place[i]];
    sines(angle, s, c, ANGLES);
    inverse(k, x, s, c, rate, bend, force);
    for (int lane = 0; lane < LANES && frame + lane < frames; lane++)
      for (int i = 0; i < NV; i++) out[(frame + lane) * NV + i] = LANE(force[i], lane);
  }
}
