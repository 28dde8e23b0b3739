-- Functions belong to the server, not to the database.

-- The aggregate of rows of item_viewers that the other functions take.
CREATE OR REPLACE FUNCTION tidemark_union AS (dense, tokens, registers) ->
    (max(dense), groupUniqArrayArray(1025)(tokens), maxMap(registers));

-- Whether the registers count: some part had no tokens, or there are too many.
CREATE OR REPLACE FUNCTION tidemark_is_dense AS seen ->
    (tupleElement(seen, 1) > 0 OR length(tupleElement(seen, 2)) > 1024);

-- The registers of tokens. A token below 2^25 is the first 25 bits of the viewer's
-- hash: 14 for the register, and 11 whose leading zeros are its rank less one. Where
-- those 11 are all zero it is 2^25 and the register times 64 and the rank less 11.
CREATE OR REPLACE FUNCTION tidemark_registers AS tokens -> (
    arrayMap(t -> toUInt16(if(t < 33554432, bitShiftRight(t, 11), bitAnd(bitShiftRight(t, 6), 16383))), tokens),
    arrayMap(t -> toUInt8(if(t < 33554432, 11 - floor(log2(bitAnd(t, 2047))), 11 + bitAnd(t, 63))), tokens));

-- LogLog-Beta for 2^14 registers, in the very operations of the API.
CREATE OR REPLACE FUNCTION tidemark_beta AS (zeros, z) ->
    -0.371009760230692 * zeros
    + 0.00978811941207509 * z
    + 0.185796293324165 * pow(z, 2)
    + 0.203015527328432 * pow(z, 3)
    - 0.116710521803686 * pow(z, 4)
    + 0.0431106699492820 * pow(z, 5)
    - 0.00599583540511831 * pow(z, 6)
    + 0.000449704299509437 * pow(z, 7);

CREATE OR REPLACE FUNCTION tidemark_estimate AS registers -> toUInt64(floor(0.5
    + 0.7213 / (1 + 1.079 / 16384) * 16384 * length(tupleElement(registers, 1))
    / (16384 - length(tupleElement(registers, 1))
       + arraySum(rank -> 1 / bitShiftLeft(toUInt64(1), rank), tupleElement(registers, 2))
       + tidemark_beta(16384 - length(tupleElement(registers, 1)),
                       log1p(16384 - length(tupleElement(registers, 1)))))));

-- How many different viewers there were, and the bounds, as the API says it. seen is
-- a tidemark_union, reached the sum of reached over the same rows of item_minutes:
-- there are never more viewers than events that reached them.
CREATE OR REPLACE FUNCTION tidemark_viewers AS (seen, reached) -> least(
    if(tidemark_is_dense(seen), greatest(tidemark_estimate(tupleElement(seen, 3)), 1025), length(tupleElement(seen, 2))),
    reached);

CREATE OR REPLACE FUNCTION tidemark_viewers_low AS (seen, reached) -> least(
    if(tidemark_is_dense(seen),
       greatest(toUInt64(floor(tidemark_estimate(tupleElement(seen, 3)) / 1.015925)), 1025),
       length(tupleElement(seen, 2))),
    reached);

CREATE OR REPLACE FUNCTION tidemark_viewers_high AS (seen, reached) -> least(
    if(tidemark_is_dense(seen),
       greatest(toUInt64(ceil(tidemark_estimate(tupleElement(seen, 3)) / 0.984075)), 1025),
       length(tupleElement(seen, 2))),
    reached);

-- Whether a row of item_viewers is among the fewest that cover a range of time, its
-- end not included: days where they lie inside it, then hours, then minutes. The range
-- is moved outward to whole minutes.
CREATE OR REPLACE FUNCTION tidemark_covers AS (level, start, since, until) -> (
    level = 'day'
        AND start >= toStartOfDay(toStartOfMinute(toDateTime(since, 'UTC')) + 86399)
        AND start < toStartOfDay(toStartOfMinute(toDateTime(until, 'UTC') + 59))
    OR level = 'hour'
        AND start >= toStartOfHour(toStartOfMinute(toDateTime(since, 'UTC')) + 3599)
        AND start < toStartOfHour(toStartOfMinute(toDateTime(until, 'UTC') + 59))
        AND NOT (start >= toStartOfDay(toStartOfMinute(toDateTime(since, 'UTC')) + 86399)
            AND start < toStartOfDay(toStartOfMinute(toDateTime(until, 'UTC') + 59)))
    OR level = 'minute'
        AND start >= toStartOfMinute(toDateTime(since, 'UTC'))
        AND start < toStartOfMinute(toDateTime(until, 'UTC') + 59)
        AND NOT (start >= toStartOfHour(toStartOfMinute(toDateTime(since, 'UTC')) + 3599)
            AND start < toStartOfHour(toStartOfMinute(toDateTime(until, 'UTC') + 59))));
