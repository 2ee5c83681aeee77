// Where a provider sends the browser once somebody has logged in there.

import { complete } from "./signon";

void complete();
