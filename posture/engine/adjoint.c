/* Gradient of a weighted sum of kept states to all parameters and the start: reverse through the RK4 steps of one
 * run. The generated adjoint() gives (df/dx)' l, then (df/dp)' l. */

static void pull(const real *k, const real *x, const real *channels, double time, const real *l, real *out) {
  real s[PADDED], c[PADDED];
  const real now = real_of(time);
  sines(x, s, c, PADDED);
  adjoint(k, x, s, c, channels, &now, l, out);
}

EXPORT int64_t posture_pullback(const Job *job, const double *weights, double *to_parameters, double *to_start) {
  enum { ALL = STATES + PARAMETERS };
  const int64_t steps = job->steps, count = job->components;
  double *path = malloc(sizeof(double) * (size_t)(steps + 1) * STATES);
  double *felt = malloc(sizeof(double) * (size_t)(2 * steps + 1) * 9);
  double *memory = malloc(sizeof(double) * (size_t)(16 * count + 1));
  if (!path || !felt || !memory) { free(path); free(felt); free(memory); return 1; }
  Waves waves = {.frequency = memory, .wave = memory + count, .phase = memory + 13 * count,
                 .sine = memory + 14 * count, .cosine = memory + 15 * count};
  if (job->deck == 1) {
    memcpy(waves.frequency, job->frequency, sizeof(double) * (size_t)count);
    memcpy(waves.wave, job->wave, sizeof(double) * (size_t)(12 * count));
    memcpy(waves.place, job->place, sizeof waves.place);
  }
  Deck deck = {.next = 2 * job->first};
  for (int64_t i = 0; i <= 2 * steps; i++) channels_at(job, &waves, &deck, 0, felt + 9 * i);
  const double h = job->step;
  double k[CONSTANTS], x[STATES + PADDED] = {0}, y[4][STATES + PADDED] = {{0}}, l[STATES], b[STATES + 1], g[ALL + 1];
  prepare(job->parameters, k);
  memcpy(path, job->start, STATES * sizeof(double));
  memcpy(x, job->start, STATES * sizeof(double));
  for (int64_t i = 0; i < steps; i++) {
    const double *f = felt + 18 * i;
    advance(k, x, f, f + 9, f + 18, (double)(job->first + i) * h, h);
    memcpy(path + (i + 1) * STATES, x, STATES * sizeof(double));
  }
  memset(to_parameters, 0, PARAMETERS * sizeof(double));
  memset(l, 0, sizeof l);
  for (int64_t i = steps - 1; i >= 0; i--) {
    if ((i + 1) % job->every == 0)
      for (int j = 0; j < STATES; j++) l[j] += weights[((i + 1) / job->every - 1) * STATES + j];
    const double *f[4] = {felt + 18 * i, felt + 18 * i + 9, felt + 18 * i + 9, felt + 18 * i + 18};
    const double time = (double)(job->first + i) * h, at[4] = {time, time + h / 2, time + h / 2, time + h};
    const double reach[4] = {0, h / 2, h / 2, h}, share[4] = {h / 6, h / 3, h / 3, h / 6};
    real rate_[STATES + 1];
    memcpy(y[0], path + i * STATES, STATES * sizeof(double));
    for (int stage = 1; stage < 4; stage++) {
      slope(k, y[stage - 1], f[stage - 1], at[stage - 1], rate_);
      for (int j = 0; j < STATES; j++) y[stage][j] = y[0][j] + reach[stage] * rate_[j];
    }
    double sum[STATES] = {0};
    memset(g, 0, sizeof g);
    for (int stage = 3; stage >= 0; stage--) {
      const double onward = stage < 3 ? reach[stage + 1] : 0;
      for (int j = 0; j < STATES; j++) b[j] = share[stage] * l[j] + onward * g[j];
      pull(k, y[stage], f[stage], at[stage], b, g);
      for (int j = 0; j < STATES; j++) sum[j] += g[j];
      for (int j = 0; j < PARAMETERS; j++) to_parameters[j] += g[STATES + j];
    }
    for (int j = 0; j < STATES; j++) l[j] += sum[j];
  }
  memcpy(to_start, l, sizeof l);
  free(path); free(felt); free(memory);
  return 0;
}
