/** Each profile with a second fixed seed, and longer runs than those of run.test.ts, which has the first. */
import { testEachProfile } from './each-profile.js';

testEachProfile(2, 1_200);
