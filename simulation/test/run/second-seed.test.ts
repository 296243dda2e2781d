/** Each profile with a second fixed seed; run.test.ts has the first. */
import { testEachProfile } from './each-profile.js';

testEachProfile(2);
