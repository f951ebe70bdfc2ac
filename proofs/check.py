import sys, time, traceback
from pathlib import Path
sys.path.insert(0,str(Path(__file__).parent))
import field
for p in field.PROOFS:
    if len(sys.argv)>1 and p.__name__ not in sys.argv[1:]: continue
    t=time.time()
    try: print(p.__name__, p(Path(__file__).parent.parent/"src/native"), f"{time.time()-t:.1f}s", flush=True)
    except Exception as e: traceback.print_exc(limit=-3); print("FAILED",p.__name__,e)
