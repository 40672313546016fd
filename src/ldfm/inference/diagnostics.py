"""Errors of averages over chains: effective number of draws, standard error, R-hat; for many quantities at once."""

import numpy as np

from ldfm.types import Floats


def _split(draws: Floats) -> Floats:
    """Cut each chain (axis 0) of draws (axis 1) in two: a drift within a chain then looks like two chains that differ."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _autocovariances(draws: Floats) -> Floats:
    """Give the autocovariances of each chain at all lags, by FFT along axis 1."""
    length = draws.shape[1]
    centred = draws - draws.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * length, axis=1)
    covariances: Floats = np.fft.irfft(np.abs(spectrum) ** 2, n=2 * length, axis=1)[:, :length] / length
    return covariances


def r_hat(draws: Floats) -> Floats:
    """Give split R-hat of draws (chains, draws, ...): spread between chains over spread within; 1 where nothing moves."""
    halves = _split(draws)
    length = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = length * halves.mean(axis=1).var(axis=0, ddof=1)
    total = (length - 1) / length * within + between / length
    stuck = within <= 1e-30
    ratio: Floats = np.sqrt(np.divide(total, within, out=np.ones_like(total), where=~stuck))
    ratio[stuck & (between > 1e-30)] = np.inf
    return ratio


def effective_draws(draws: Floats) -> Floats:
    """Give the effective number of draws (chains, draws, ...) for estimating the mean (Geyer's initial monotone sequence).

    Chains that do not agree count little: their spread enters the variance. At most the number of draws times log10 of it.
    """
    halves = _split(draws)
    chains, length = halves.shape[:2]
    number = chains * length
    covariances = _autocovariances(halves).mean(axis=0)  # (lags, ...)
    within = covariances[0] * length / (length - 1)
    variance = within * (length - 1) / length + halves.mean(axis=1).var(axis=0, ddof=1)
    still = variance <= 1e-30
    safe = np.where(still, 1.0, variance)
    correlations = 1.0 - (within - covariances * length / (length - 1)) / safe
    correlations[0] = 1.0
    pairs = correlations[: length // 2 * 2].reshape(length // 2, 2, *correlations.shape[1:]).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(-1.0 + 2.0 * monotone.sum(axis=0), 1.0 / np.log10(max(number, 10)))
    effective: Floats = np.where(still, float(number), number / time)
    return effective


def standard_error(draws: Floats) -> Floats:
    """Give the standard error of the mean of draws (chains, draws, ...)."""
    spread = draws.reshape(-1, *draws.shape[2:]).var(axis=0, ddof=1)
    error: Floats = np.sqrt(spread / effective_draws(draws))
    return error
